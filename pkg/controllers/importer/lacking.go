// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package importer

import (
	"fmt"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/masthead-dev/masthead/pkg/controllers/importer/scope"
)

// lacking are the imports that have no credentials, and how soon each is looked at again: Secrets and ServiceAccounts
// are not watched, and a look costs about twenty requests to the hub, most of which have nothing to do with them. The
// zero value is ready to use.
type lacking struct {
	mu    sync.Mutex
	known map[types.NamespacedName]lack
}

// lack is why an import has no credentials.
type lack struct {
	why string
	// times is how often in a row it was found, and until when the next look can wait.
	times int
	until time.Time
}

// next is how soon an import is looked at again that has no credentials: after a retry, and after twice as long each
// time that nothing has changed, up to a resync. Looks for other reasons in between do not count. Another spec, another
// import of the name and another reason each begin anew.
func (l *lacking) next(p *scope.Scope, c metav1.Condition, now time.Time) time.Duration {
	why := fmt.Sprint(p.Import.UID, p.Import.Generation, c.Reason, c.Message)
	l.mu.Lock()
	defer l.mu.Unlock()
	last := l.known[p.Key()]
	if last.why != why {
		last = lack{why: why}
	}
	if !now.Before(last.until) {
		last.times++
		last.until = now.Add(scope.LeftAloneFor(last.times))
	}
	if l.known == nil {
		l.known = map[types.NamespacedName]lack{}
	}
	l.known[p.Key()] = last
	return last.until.Sub(now)
}

// forget is for an import that has credentials, asks for none, or is gone.
func (l *lacking) forget(key types.NamespacedName) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.known, key)
}
