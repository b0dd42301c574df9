// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package readonlypolicy

import (
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	mcr "sigs.k8s.io/multicluster-runtime/pkg/multicluster"
)

// Name is the name of the ValidatingAdmissionPolicy and of its binding in workload clusters. config/workload names it
// too.
const Name = "masthead-read-only"

const (
	// settles is how long an API server is given to pick up a policy change: it polls once a second, and compiles what it
	// finds.
	settles = 5 * time.Second

	// sureFor is how long a cluster's confirmation of the previous username is trusted.
	sureFor = time.Minute

	// patience is how long to wait for the cluster's answer.
	patience = 30 * time.Second
)

// Refused reports whether an error is an API server's refusal by the policy.
func Refused(err error) bool {
	return apierrors.IsForbidden(err) && strings.Contains(err.Error(), "ValidatingAdmissionPolicy '"+Name+"'")
}

// A User is Masthead's username in one workload cluster. Its methods are safe for concurrent use.
type User struct {
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
func (u *User) Name() (name string, doubts int) {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.name, u.doubts
}

// Learn stores the cluster's answer, unless a doubt was raised since the request.
func (u *User) Learn(name string, doubts int, now time.Time) {
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
func (u *User) Doubt(now time.Time) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.doubtLocked(now)
}

func (u *User) doubtLocked(now time.Time) {
	if u.name != "" {
		u.before = u.name
	}
	u.name, u.confirmedAt, u.doubtedAt = "", time.Time{}, now
	u.doubts++
}

// IsSure reports whether the cluster recently confirmed a doubted username.
func (u *User) IsSure(now time.Time) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return now.Sub(u.confirmedAt) < sureFor
}

// Wrote records when the policy was written.
func (u *User) Wrote(now time.Time) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.written = now
}

// IsNew reports whether an API server of the cluster may not have picked up the last policy change yet.
func (u *User) IsNew(now time.Time) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return now.Sub(u.written) < settles
}

// An Excuse classifies a refusal by the policy.
type Excuse string

const (
	// ExcuseNone means: the username does not explain the refusal. It is a problem.
	ExcuseNone Excuse = "None"
	// ExcuseDoubted means: the user may have changed. The username has to be requested from the cluster.
	ExcuseDoubted Excuse = "Doubted"
	// ExcuseAwaited means: the username is being requested, or the policy was just changed.
	ExcuseAwaited Excuse = "Awaited"
)

// Excuse classifies a refusal by the policy.
func (u *User) Excuse(now time.Time) Excuse {
	u.mu.Lock()
	defer u.mu.Unlock()
	switch {
	case now.Sub(u.written) < settles:
		return ExcuseAwaited
	case u.name == "" && u.doubts > 0:
		if now.Sub(u.doubtedAt) < patience {
			return ExcuseAwaited
		}
		return ExcuseNone
	case u.name == "", now.Sub(u.confirmedAt) < sureFor:
		return ExcuseNone
	}
	u.doubtLocked(now)
	return ExcuseDoubted
}

// Users are the Users of all workload clusters. The zero value is ready for use.
type Users struct {
	mu     sync.Mutex
	byName map[mcr.ClusterName]*User
	asks   []func(mcr.ClusterName)
}

// ForCluster returns the User of a cluster.
func (u *Users) ForCluster(cluster mcr.ClusterName) *User {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.byName == nil {
		u.byName = map[mcr.ClusterName]*User{}
	}
	if u.byName[cluster] == nil {
		u.byName[cluster] = &User{}
	}
	return u.byName[cluster]
}

// Renew returns the User of a cluster with a new connection, maybe with other credentials. Its name has to be
// requested.
func (u *Users) Renew(cluster mcr.ClusterName, now time.Time) *User {
	u.Forget(cluster)
	user := u.ForCluster(cluster)
	user.Doubt(now)
	return user
}

// Forget drops the state of a cluster that is gone.
func (u *Users) Forget(cluster mcr.ClusterName) {
	u.mu.Lock()
	defer u.mu.Unlock()
	delete(u.byName, cluster)
}

// OnDoubt registers the function that makes a controller ask a cluster for Masthead's username. It must not block.
func (u *Users) OnDoubt(ask func(mcr.ClusterName)) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.asks = append(u.asks, ask)
}

// Excuses reports whether an error is a policy refusal that is no problem, because a cluster's username for Masthead
// may have changed. If so, the username is requested again.
func (u *Users) Excuses(cluster mcr.ClusterName, err error, now time.Time) bool {
	if !Refused(err) {
		return false
	}
	excuse := u.ForCluster(cluster).Excuse(now)
	if excuse == ExcuseDoubted {
		u.mu.Lock()
		asks := u.asks
		u.mu.Unlock()
		for _, ask := range asks {
			ask(cluster)
		}
	}
	return excuse != ExcuseNone
}
