// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package references

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/sets"

	commonv1alpha1 "github.com/masthead-dev/masthead/apis/common/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/kindwatch"
	"github.com/masthead-dev/masthead/pkg/references"
)

// maxSources bounds the watched sources of one cluster.
const maxSources = 256

// maxSourcesOfNamespace bounds the sources that the objects of one namespace, or those without one, can have watched,
// and reservedSources is how many are reserved for namespaces without any watched source. So neither one user nor a few
// take all of them.
const (
	maxSourcesOfNamespace = 64
	reservedSources       = 64
)

// maxSteps bounds the dependencies followed to find out whether an object depends on itself.
const maxSteps = 10_000

// dependencies records which objects wait for which, or follow them. It is not safe for concurrent use.
type dependencies struct {
	// of maps each object to what it depends on, and requests maps it to the watches for it.
	of       map[objectKey][]objectKey
	requests map[objectKey]Request
	watched  map[objectKey][]kindwatch.Kind
	users    map[kindwatch.Kind]sets.Set[objectKey]

	// dependents is the reverse of of.
	dependents map[objectKey]sets.Set[objectKey]

	// inNamespace is how many objects of a namespace use each watch.
	inNamespace map[string]map[kindwatch.Kind]int

	// changes counts the changes of watched objects, and changedAt is the count at the last change of each.
	changes   uint64
	changedAt map[kindwatch.Kind]uint64
}

// change is the effect of a new set of dependencies.
type change struct {
	// start and stop are the kinds to start and stop watching.
	start, stop []kindwatch.Kind

	// all reports whether there is room to watch everything on which the object depends, and watched what is.
	all     bool
	watched []kindwatch.Kind

	// joined are kinds that were so far watched only for others.
	joined []kindwatch.Kind

	// lost reports whether the object no longer depends on something on which it did.
	lost bool
}

func newDependencies() *dependencies {
	return &dependencies{
		of: map[objectKey][]objectKey{}, requests: map[objectKey]Request{}, watched: map[objectKey][]kindwatch.Kind{},
		users: map[kindwatch.Kind]sets.Set[objectKey]{}, dependents: map[objectKey]sets.Set[objectKey]{},
		inNamespace: map[string]map[kindwatch.Kind]int{}, changedAt: map[kindwatch.Kind]uint64{},
	}
}

// set replaces the dependencies of an object by sources, and what else is watched for it.
func (d *dependencies) set(key objectKey, req Request, sources []references.Source, others ...kindwatch.Kind) change {
	before, dependedOn := d.watched[key], d.of[key]
	d.forget(key)
	watches := make([]kindwatch.Kind, 0, len(sources)+len(others))
	for _, s := range sources {
		// Also if it is not watched: a cycle through it is still found.
		d.link(key, keyOfSource(s))
		watches = append(watches, watchedKind(s))
	}
	out := change{all: true}
	for _, kind := range append(watches, others...) {
		if !d.hasRoom(key.Namespace, kind) {
			out.all = false
			continue
		}
		if d.users[kind] == nil {
			d.users[kind] = sets.New[objectKey]()
			out.start = append(out.start, kind)
		} else if !d.users[kind].Has(key) {
			out.joined = append(out.joined, kind)
		}
		d.users[kind].Insert(key)
		d.watched[key] = append(d.watched[key], kind)
		d.count(key.Namespace, kind)
	}
	if len(watches)+len(others) > 0 {
		d.requests[key] = req
	}
	for _, kind := range before {
		if slices.Contains(d.watched[key], kind) {
			continue
		}
		d.users[kind].Delete(key)
		if len(d.users[kind]) == 0 {
			delete(d.users, kind)
			delete(d.changedAt, kind)
			out.stop = append(out.stop, kind)
		}
	}
	out.watched = slices.Clone(d.watched[key])
	out.lost = slices.ContainsFunc(dependedOn, func(k objectKey) bool { return !slices.Contains(d.of[key], k) })
	return out
}

// link records that an object depends on another one.
func (d *dependencies) link(key, on objectKey) {
	d.of[key] = append(d.of[key], on)
	if d.dependents[on] == nil {
		d.dependents[on] = sets.New[objectKey]()
	}
	d.dependents[on].Insert(key)
}

// forget drops the dependencies of an object, but not which watches it uses.
func (d *dependencies) forget(key objectKey) {
	for _, on := range d.of[key] {
		d.dependents[on].Delete(key)
		if len(d.dependents[on]) == 0 {
			delete(d.dependents, on)
		}
	}
	d.uncount(key.Namespace, d.watched[key])
	delete(d.of, key)
	delete(d.requests, key)
	delete(d.watched, key)
}

// hasRoom reports whether the objects of a namespace can have one more source watched, which some may have already.
func (d *dependencies) hasRoom(namespace string, kind kindwatch.Kind) bool {
	counts, room := d.inNamespace[namespace], maxSources
	if len(counts) > 0 {
		room -= reservedSources
	}
	if d.users[kind] == nil && len(d.users) >= room {
		return false
	}
	return counts[kind] > 0 || len(counts) < maxSourcesOfNamespace
}

func (d *dependencies) count(namespace string, kind kindwatch.Kind) {
	if d.inNamespace[namespace] == nil {
		d.inNamespace[namespace] = map[kindwatch.Kind]int{}
	}
	d.inNamespace[namespace][kind]++
}

func (d *dependencies) uncount(namespace string, kinds []kindwatch.Kind) {
	counts := d.inNamespace[namespace]
	for _, kind := range kinds {
		if counts[kind]--; counts[kind] <= 0 {
			delete(counts, kind)
		}
	}
	if len(counts) == 0 {
		delete(d.inNamespace, namespace)
	}
}

// requestsDependingOn returns the requests of the objects that depend on another one.
func (d *dependencies) requestsDependingOn(key objectKey, which func(objectKey) bool) []Request {
	var out []Request
	for k := range d.dependents[key] {
		if which(k) {
			out = append(out, d.requests[k])
		}
	}
	return out
}

// changed records a change of something watched, and returns the requests of the objects that depend on it.
func (d *dependencies) changed(kind kindwatch.Kind) []Request {
	if len(d.users[kind]) > 0 {
		d.changes++
		d.changedAt[kind] = d.changes
	}
	return d.requestsUsing(kind)
}

// changedSince reports whether any of some kinds has changed since that change count.
func (d *dependencies) changedSince(kinds []kindwatch.Kind, since uint64) bool {
	return slices.ContainsFunc(kinds, func(kind kindwatch.Kind) bool { return d.changedAt[kind] > since })
}

// requestsUsing returns the requests of the objects that depend on a watched kind.
func (d *dependencies) requestsUsing(kind kindwatch.Kind) []Request {
	var out []Request
	for key := range d.users[kind] {
		out = append(out, d.requests[key])
	}
	return out
}

// cycle returns the path from an object back to itself along dependencies; nil if there is none. It gives up after
// maxSteps: users decide how many objects depend on each other, and others wait meanwhile.
func (d *dependencies) cycle(from objectKey) (way []objectKey, known bool) {
	cameFrom := map[objectKey]objectKey{}
	open, steps := []objectKey{from}, 0
	for len(open) > 0 {
		at := open[len(open)-1]
		open = open[:len(open)-1]
		for _, next := range d.of[at] {
			if steps++; steps > maxSteps {
				return nil, false
			}
			if next == from {
				return wayTo(at, from, cameFrom), true
			}
			if _, seen := cameFrom[next]; !seen {
				cameFrom[next] = at
				open = append(open, next)
			}
		}
	}
	return nil, true
}

// wayTo is the path from an object to another one.
func wayTo(at, from objectKey, cameFrom map[objectKey]objectKey) []objectKey {
	way := []objectKey{at}
	for at != from {
		at = cameFrom[at]
		way = append(way, at)
	}
	slices.Reverse(way)
	return way
}

// cyclic is the error for objects that depend on each other.
func cyclic(cycle []objectKey) *references.Error {
	const shown = 5
	names := make([]string, 0, shown+1)
	for i, k := range cycle {
		if i == shown {
			names = append(names, "...")
			break
		}
		names = append(names, k.String())
	}
	return &references.Error{
		Reason: commonv1alpha1.ReasonCycle,
		Cause:  fmt.Errorf("these objects reference each other: %s, which references the first", strings.Join(names, ", which references ")),
	}
}
