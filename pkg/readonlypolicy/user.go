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
	// settles is how long an API server is given to hear of a change of the policy: it looks once a second, and compiles
	// what it finds.
	settles = 5 * time.Second

	// sureFor is how long it is believed that a cluster knows Masthead as the same user as before, after it has said so.
	sureFor = time.Minute

	// patience is how long an answer of the cluster is waited for.
	patience = 30 * time.Second
)

// Refused is whether an API server says that the policy has refused a request.
func Refused(err error) bool {
	return apierrors.IsForbidden(err) && strings.Contains(err.Error(), "ValidatingAdmissionPolicy '"+Name+"'")
}

// A User is as whom one workload cluster knows Masthead. Its methods are safe for concurrent use.
type User struct {
	mu sync.Mutex

	// name is empty if the cluster has not been asked since it may have changed.
	name string

	// doubts counts how often it became doubtful, the last time at doubtedAt. An answer to a question from before the last
	// doubt is not kept.
	doubts    int
	doubtedAt time.Time

	// before is the name that was doubted last, and confirmedAt when the cluster last said after a doubt that it is as
	// before.
	before      string
	confirmedAt time.Time

	// written is when the policy was last written.
	written time.Time
}

// Name is as whom the cluster knows Masthead, if it has said so, and how many doubts there were until now.
func (u *User) Name() (name string, doubts int) {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.name, u.doubts
}

// Learn keeps what the cluster said, unless it has become doubtful since it was asked.
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

// Doubt has the cluster asked again as whom it knows Masthead.
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

// IsSure is whether the cluster was doubted in vain not long ago.
func (u *User) IsSure(now time.Time) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return now.Sub(u.confirmedAt) < sureFor
}

// Wrote remembers when the policy was written.
func (u *User) Wrote(now time.Time) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.written = now
}

// IsNew is whether an API server of the cluster may not have heard yet of the last change of the policy.
func (u *User) IsNew(now time.Time) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return now.Sub(u.written) < settles
}

// An Excuse is what a refusal by the policy means.
type Excuse string

const (
	// ExcuseNone means: the policy refuses what it should not for another reason than the user. It is a problem.
	ExcuseNone Excuse = "None"
	// ExcuseDoubted means: the user may have changed. The cluster has to be asked.
	ExcuseDoubted Excuse = "Doubted"
	// ExcuseAwaited means: the cluster is being asked, or the policy was just changed.
	ExcuseAwaited Excuse = "Awaited"
)

// Excuse decides what a refusal by the policy means.
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

// Of returns the User of a cluster.
func (u *Users) Of(cluster mcr.ClusterName) *User {
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

// Renew returns the User of a cluster to which there is a new connection, maybe with other credentials: it has to be
// asked.
func (u *Users) Renew(cluster mcr.ClusterName, now time.Time) *User {
	u.Forget(cluster)
	user := u.Of(cluster)
	user.Doubt(now)
	return user
}

// Forget drops what is known about a cluster that is gone.
func (u *Users) Forget(cluster mcr.ClusterName) {
	u.mu.Lock()
	defer u.mu.Unlock()
	delete(u.byName, cluster)
}

// OnDoubt registers what has a cluster asked as whom it knows Masthead. It must not block.
func (u *Users) OnDoubt(ask func(mcr.ClusterName)) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.asks = append(u.asks, ask)
}

// Excuses is whether an error is a refusal by the policy that is no problem, because the user of a cluster may have
// changed. It has the cluster asked if that is so.
func (u *Users) Excuses(cluster mcr.ClusterName, err error, now time.Time) bool {
	if !Refused(err) {
		return false
	}
	excuse := u.Of(cluster).Excuse(now)
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
