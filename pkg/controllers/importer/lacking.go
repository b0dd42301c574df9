// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package importer

import (
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/masthead-dev/masthead/pkg/condition"
	"github.com/masthead-dev/masthead/pkg/controllers/importer/workload"
)

// lacking are the imports without credentials, and how soon each is requeued: Secrets and ServiceAccounts are not
// watched, and a pass costs about twenty requests to the hub, most of them unrelated. The zero value is ready to use.
type lacking struct {
	mu    sync.Mutex
	known map[types.NamespacedName]lack
}

// lack is why an import has no credentials.
type lack struct {
	why string
	// times is how often in a row it was found, and until when the next pass can wait.
	times int
	until time.Time
}

// next is the requeue delay of an import without credentials: a retry, doubled each time that nothing has changed, up
// to a resync. Passes for other reasons in between do not count. A changed spec, another import of the name and another
// reason each reset it.
func (l *lacking) next(s *scope, problem *condition.Error, now time.Time) time.Duration {
	why := fmt.Sprint(s.imp.UID, s.imp.Generation, problem.Reason, problem.Message)
	l.mu.Lock()
	defer l.mu.Unlock()
	last := l.known[s.key()]
	if last.why != why {
		last = lack{why: why}
	}
	if !now.Before(last.until) {
		last.times++
		last.until = now.Add(workload.LeftAloneFor(last.times))
	}
	if l.known == nil {
		l.known = map[types.NamespacedName]lack{}
	}
	l.known[s.key()] = last
	return last.until.Sub(now)
}

// forget drops an import that has credentials, needs none, or is gone.
func (l *lacking) forget(key types.NamespacedName) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.known, key)
}
