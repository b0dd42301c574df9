// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	mcr "sigs.k8s.io/multicluster-runtime/pkg/multicluster"
)

// PolicyName is the name of the ValidatingAdmissionPolicy, and of its binding, in workload clusters; also in
// config/workload.
const PolicyName = "masthead-read-only"

const (
	// settles is how long an API server is given to pick up a policy change: it polls once a second, and compiles what it
	// finds.
	settles = 5 * time.Second

	// sureFor is how long a cluster's confirmation of the previous username is trusted.
	sureFor = time.Minute

	// patience is how long to wait for the cluster's answer.
	patience = 30 * time.Second
)

// refusedByPolicy reports whether an error is an API server's refusal by the policy.
func refusedByPolicy(err error) bool {
	return apierrors.IsForbidden(err) && strings.Contains(err.Error(), "ValidatingAdmissionPolicy '"+PolicyName+"'")
}

// A PolicyUser is Masthead's username in one workload cluster. Its methods are safe for concurrent use.
type PolicyUser struct {
	mu sync.Mutex

	// name is empty if it may have changed, and has not been requested from the cluster since.
	name string

	// doubts counts the doubts, the last one at doubtedAt. The answer to a request from before the last
	// doubt is discarded.
	doubts    int
	doubtedAt time.Time

	// before is the last doubted name, and confirmedAt is when the cluster last confirmed it after a doubt.
	before      string
	confirmedAt time.Time

	// written is when the policy was last written.
	written time.Time
}

// Name returns Masthead's username in the cluster, if known, and the number of doubts so far.
func (u *PolicyUser) Name() (name string, doubts int) {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.name, u.doubts
}

// Learn stores the cluster's answer, unless a doubt was raised since the request.
func (u *PolicyUser) Learn(name string, doubts int, now time.Time) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.doubts != doubts {
		return
	}
	if name == u.before {
		u.confirmedAt = now
	}
	u.name = name
}

// Doubt invalidates the username, so that it is requested from the cluster again.
func (u *PolicyUser) Doubt(now time.Time) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.doubtLocked(now)
}

func (u *PolicyUser) doubtLocked(now time.Time) {
	if u.name != "" {
		u.before = u.name
	}
	u.name, u.confirmedAt, u.doubtedAt = "", time.Time{}, now
	u.doubts++
}

// IsSure reports whether the cluster recently confirmed a doubted username.
func (u *PolicyUser) IsSure(now time.Time) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return now.Sub(u.confirmedAt) < sureFor
}

// Wrote records when the policy was written.
func (u *PolicyUser) Wrote(now time.Time) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.written = now
}

// IsNew reports whether an API server of the cluster may not have picked up the last policy change yet.
func (u *PolicyUser) IsNew(now time.Time) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return now.Sub(u.written) < settles
}

// excuses reports whether a refusal by the policy is no problem, and whether the username is doubted because of it.
func (u *PolicyUser) excuses(now time.Time) (excused, doubted bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	switch {
	case now.Sub(u.written) < settles:
		return true, false
	case u.name == "" && u.doubts > 0:
		// It is being requested.
		return now.Sub(u.doubtedAt) < patience, false
	case u.name == "", now.Sub(u.confirmedAt) < sureFor:
		return false, false
	}
	u.doubtLocked(now)
	return true, true
}

// PolicyUsers are the PolicyUsers of all workload clusters. The zero value is ready for use.
type PolicyUsers struct {
	mu     sync.Mutex
	byName map[mcr.ClusterName]*PolicyUser
	asks   []func(mcr.ClusterName)
}

// ForCluster returns the PolicyUser of a cluster.
func (u *PolicyUsers) ForCluster(cluster mcr.ClusterName) *PolicyUser {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.byName == nil {
		u.byName = map[mcr.ClusterName]*PolicyUser{}
	}
	if u.byName[cluster] == nil {
		u.byName[cluster] = &PolicyUser{}
	}
	return u.byName[cluster]
}

// Renew returns the PolicyUser of a cluster with a new connection, maybe with other credentials. Its name has to be
// requested.
func (u *PolicyUsers) Renew(cluster mcr.ClusterName, now time.Time) *PolicyUser {
	u.Forget(cluster)
	user := u.ForCluster(cluster)
	user.Doubt(now)
	return user
}

// Forget drops the state of a cluster that is gone.
func (u *PolicyUsers) Forget(cluster mcr.ClusterName) {
	u.mu.Lock()
	defer u.mu.Unlock()
	delete(u.byName, cluster)
}

// OnDoubt registers the function that makes a controller ask a cluster for Masthead's username. It must not block.
func (u *PolicyUsers) OnDoubt(ask func(mcr.ClusterName)) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.asks = append(u.asks, ask)
}

// Excuses reports whether an error is a policy refusal that is no problem, because a cluster's username for Masthead
// may have changed. If so, the username is requested again.
func (u *PolicyUsers) Excuses(cluster mcr.ClusterName, err error, now time.Time) bool {
	if !refusedByPolicy(err) {
		return false
	}
	excused, doubted := u.ForCluster(cluster).excuses(now)
	if doubted {
		u.mu.Lock()
		asks := u.asks
		u.mu.Unlock()
		for _, ask := range asks {
			ask(cluster)
		}
	}
	return excused
}
