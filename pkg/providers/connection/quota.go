// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package connection

import (
	"cmp"
	"slices"
	"sync"
	"time"
)

// A quota decides which enrolments have a place in their class, limited by EnrollmentClass.spec.maxClusters.
//
// The members of a class are ordered: those that had a place before those that never had one, and within both groups
// older objects first. The first maxClusters members have a place. A member gets its first place only while all earlier
// holders still have theirs, so with an unchanged limit none loses its place to another; when the limit is lowered, the
// youngest do.
type quota struct {
	wake func(Key)

	mu      sync.Mutex
	members map[Key]*member
	classes map[string]*roster
}

// member is an enrolment whose class allows it.
type member struct {
	key     Key
	class   string
	created time.Time
	// placed reports whether it has, or ever had, a place; admitted is the last result of admit.
	placed, admitted bool
}

// roster holds the ordered members of one class, and its limit; zero means none.
type roster struct {
	limit int
	order []*member
}

// newQuota returns a quota without members. wake is called for enrolments that got a place, or lost it.
func newQuota(wake func(Key)) *quota {
	return &quota{wake: wake, members: map[Key]*member{}, classes: map[string]*roster{}}
}

// reserve keeps a place for an enrolment that had one before the start, until admit or leave is called for it. Until
// then it counts as older than any other.
func (q *quota) reserve(k Key, class string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.insertLocked(&member{key: k, class: class, placed: true})
}

// admit makes an enrolment a member of a class with a limit, zero for none, and reports whether it has a place.
func (q *quota) admit(k Key, class string, created time.Time, limit int) bool {
	q.mu.Lock()
	var woken []Key
	m := q.members[k]
	if m == nil || m.class != class {
		woken = append(woken, q.removeLocked(m)...)
		m = &member{key: k, class: class, created: created}
		q.insertLocked(m)
	} else if !m.created.Equal(created) {
		woken = append(woken, q.removeLocked(m)...)
		m.created = created
		q.insertLocked(m)
	}
	r := q.classes[class]
	r.limit = limit
	i, _ := slices.BinarySearchFunc(r.order, m, compareMembers)
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

// leave gives up the place of an enrolment, if any, and wakes the one that gets it.
func (q *quota) leave(k Key) {
	q.mu.Lock()
	woken := q.removeLocked(q.members[k])
	q.mu.Unlock()
	q.wakeAll(k, woken)
}

func (q *quota) wakeAll(but Key, keys []Key) {
	for _, k := range keys {
		if k != but {
			q.wake(k)
		}
	}
}

func (q *quota) insertLocked(m *member) {
	r := q.classes[m.class]
	if r == nil {
		r = &roster{}
		q.classes[m.class] = r
	}
	i, _ := slices.BinarySearchFunc(r.order, m, compareMembers)
	r.order = slices.Insert(r.order, i, m)
	q.members[m.key] = m
}

// removeLocked returns the keys to wake.
func (q *quota) removeLocked(m *member) []Key {
	if m == nil {
		return nil
	}
	r := q.classes[m.class]
	delete(q.members, m.key)
	if i, found := slices.BinarySearchFunc(r.order, m, compareMembers); found {
		r.order = slices.Delete(r.order, i, i+1)
	}
	if len(r.order) == 0 {
		delete(q.classes, m.class)
	}
	return r.nextLocked()
}

// nextLocked returns the last member with a place, if admit has not granted it yet: one that leaves makes room for one.
func (r *roster) nextLocked() []Key {
	if r.limit == 0 || len(r.order) < r.limit || r.order[r.limit-1].admitted {
		return nil
	}
	return []Key{r.order[r.limit-1].key}
}

func compareMembers(a, b *member) int {
	if a.placed != b.placed {
		if a.placed {
			return -1
		}
		return 1
	}
	return cmp.Or(a.created.Compare(b.created), cmp.Compare(a.key.String(), b.key.String()))
}
