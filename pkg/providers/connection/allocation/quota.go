// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package allocation

import (
	"cmp"
	"fmt"
	"slices"
	"sync"
	"time"
)

// A Key names an enrolment.
type Key interface {
	comparable
	fmt.Stringer
}

// Quota decides which enrolments have a place in their class, limited by EnrollmentClass.spec.maxClusters.
//
// The members of a class are ordered: those that had a place before those that never had one, and within both groups
// older objects first. The first maxClusters members have a place. A member gets its first place only while all earlier
// holders still have theirs, so with an unchanged limit none loses its place to another; when the limit is lowered, the
// youngest do.
type Quota[K Key] struct {
	wake func(K)

	mu      sync.Mutex
	members map[K]*member[K]
	classes map[string]*roster[K]
}

// member is an enrolment whose class allows it.
type member[K Key] struct {
	key     K
	class   string
	created time.Time
	// placed reports whether it has, or ever had, a place; admitted is the last result of Admit.
	placed, admitted bool
}

// roster holds the ordered members of one class, and its limit; zero means none.
type roster[K Key] struct {
	limit int
	order []*member[K]
}

// NewQuota returns a Quota without members. wake is called for enrolments that got a place, or lost it.
func NewQuota[K Key](wake func(K)) *Quota[K] {
	return &Quota[K]{wake: wake, members: map[K]*member[K]{}, classes: map[string]*roster[K]{}}
}

// Reserve keeps a place for an enrolment that had one before the start, until Admit or Leave is called for it. Until
// then it counts as older than any other.
func (q *Quota[K]) Reserve(k K, class string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.insertLocked(&member[K]{key: k, class: class, placed: true})
}

// Admit makes an enrolment a member of a class with a limit, zero for none, and reports whether it has a place.
func (q *Quota[K]) Admit(k K, class string, created time.Time, limit int) bool {
	q.mu.Lock()
	var woken []K
	m := q.members[k]
	if m == nil || m.class != class {
		woken = append(woken, q.removeLocked(m)...)
		m = &member[K]{key: k, class: class, created: created}
		q.insertLocked(m)
	} else if !m.created.Equal(created) {
		woken = append(woken, q.removeLocked(m)...)
		m.created = created
		q.insertLocked(m)
	}
	r := q.classes[class]
	r.limit = limit
	i, _ := slices.BinarySearchFunc(r.order, m, compareMembers[K])
	m.admitted = limit == 0 || i < limit
	if m.admitted && !m.placed {
		r.order = slices.Delete(r.order, i, i+1)
		m.placed = true
		q.insertLocked(m)
	}
	woken = append(woken, r.nextLocked()...)
	q.mu.Unlock()
	q.wakeAll(k, woken)
	return m.admitted
}

// Leave gives up the place of an enrolment, if any, and wakes the one that gets it.
func (q *Quota[K]) Leave(k K) {
	q.mu.Lock()
	woken := q.removeLocked(q.members[k])
	q.mu.Unlock()
	q.wakeAll(k, woken)
}

func (q *Quota[K]) wakeAll(but K, keys []K) {
	for _, k := range keys {
		if k != but {
			q.wake(k)
		}
	}
}

func (q *Quota[K]) insertLocked(m *member[K]) {
	r := q.classes[m.class]
	if r == nil {
		r = &roster[K]{}
		q.classes[m.class] = r
	}
	i, _ := slices.BinarySearchFunc(r.order, m, compareMembers[K])
	r.order = slices.Insert(r.order, i, m)
	q.members[m.key] = m
}

// removeLocked returns the keys to wake.
func (q *Quota[K]) removeLocked(m *member[K]) []K {
	if m == nil {
		return nil
	}
	r := q.classes[m.class]
	delete(q.members, m.key)
	if i, found := slices.BinarySearchFunc(r.order, m, compareMembers[K]); found {
		r.order = slices.Delete(r.order, i, i+1)
	}
	if len(r.order) == 0 {
		delete(q.classes, m.class)
	}
	return r.nextLocked()
}

// nextLocked returns the last member with a place, if Admit has not granted it yet: one that leaves makes room for one.
func (r *roster[K]) nextLocked() []K {
	if r.limit == 0 || len(r.order) < r.limit || r.order[r.limit-1].admitted {
		return nil
	}
	return []K{r.order[r.limit-1].key}
}

func compareMembers[K Key](a, b *member[K]) int {
	if a.placed != b.placed {
		if a.placed {
			return -1
		}
		return 1
	}
	return cmp.Or(a.created.Compare(b.created), cmp.Compare(a.key.String(), b.key.String()))
}
