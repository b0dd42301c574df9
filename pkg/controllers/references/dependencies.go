// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package references

import (
	"slices"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/masthead-dev/masthead/pkg/kindwatch"
	"github.com/masthead-dev/masthead/pkg/references"
)

// maxSources is how many sources are watched at most in one cluster.
const maxSources = 256

// maxSourcesOfNamespace is how many of them the objects of one namespace can have watched, so that no user takes all of them.
const maxSourcesOfNamespace = 64

// nothingKept is an annotation that nobody has: of the metadata of sources no annotation is kept, and nothing else that can be large.
const nothingKept = "masthead.dev/none"

// maxSteps is how many dependencies are followed at most to find out whether an object depends on itself.
const maxSteps = 10_000

// objectKey names an object. Its version does not matter.
type objectKey struct {
	schema.GroupKind
	types.NamespacedName
}

func (k objectKey) String() string { return k.Kind + " " + k.NamespacedName.String() }

func keyOfSource(s references.Source) objectKey {
	return objectKey{s.GroupKind(), s.NamespacedName}
}

// dependencies are which objects wait for which, or follow them. It is not safe for concurrent use.
type dependencies struct {
	// of has for each object what it depends on, and requests has it by what is watched for it.
	of       map[objectKey][]objectKey
	requests map[objectKey]Request
	watched  map[objectKey][]kindwatch.Kind
	users    map[kindwatch.Kind]sets.Set[objectKey]

	// inNamespace is how many objects of a namespace use what is watched.
	inNamespace map[string]map[kindwatch.Kind]int
}

func newDependencies() *dependencies {
	return &dependencies{
		of: map[objectKey][]objectKey{}, requests: map[objectKey]Request{}, watched: map[objectKey][]kindwatch.Kind{},
		users: map[kindwatch.Kind]sets.Set[objectKey]{}, inNamespace: map[string]map[kindwatch.Kind]int{},
	}
}

// set makes sources all that an object depends on, and returns which kinds are to be watched from now on and which not any more, and
// whether all of them are.
func (d *dependencies) set(key objectKey, req Request, sources []references.Source) (start, stop []kindwatch.Kind, all bool) {
	before := d.watched[key]
	delete(d.of, key)
	delete(d.requests, key)
	delete(d.watched, key)
	d.uncount(key.Namespace, before)
	all = true
	for _, s := range sources {
		// Also if it is not watched: who depends on himself over it is still found.
		d.of[key] = append(d.of[key], keyOfSource(s))
		kind := watchOf(s)
		if !d.hasRoom(key.Namespace, kind) {
			all = false
			continue
		}
		if d.users[kind] == nil {
			if len(d.users) >= maxSources {
				all = false
				continue
			}
			d.users[kind] = sets.New[objectKey]()
			start = append(start, kind)
		}
		d.users[kind].Insert(key)
		d.watched[key] = append(d.watched[key], kind)
		d.count(key.Namespace, kind)
	}
	if len(sources) > 0 {
		d.requests[key] = req
	}
	for _, kind := range before {
		if slices.Contains(d.watched[key], kind) {
			continue
		}
		d.users[kind].Delete(key)
		if len(d.users[kind]) == 0 {
			delete(d.users, kind)
			stop = append(stop, kind)
		}
	}
	return start, stop, all
}

// hasRoom is whether the objects of a namespace can have one more source watched, which some of them may have already.
func (d *dependencies) hasRoom(namespace string, kind kindwatch.Kind) bool {
	counts := d.inNamespace[namespace]
	return namespace == "" || counts[kind] > 0 || len(counts) < maxSourcesOfNamespace
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

// usersOf are the requests of the objects that depend on what is watched.
func (d *dependencies) usersOf(kind kindwatch.Kind) []Request {
	var out []Request
	for key := range d.users[kind] {
		out = append(out, d.requests[key])
	}
	return out
}

// cycle is the way from an object back to itself, over what objects depend on; nil if there is none. It is not found out if that takes more
// than maxSteps: people decide how many objects depend on each other, and others wait meanwhile.
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

// wayTo is the way from an object to another one.
func wayTo(at, from objectKey, cameFrom map[objectKey]objectKey) []objectKey {
	way := []objectKey{at}
	for at != from {
		at = cameFrom[at]
		way = append(way, at)
	}
	slices.Reverse(way)
	return way
}

// watchOf is the watch of one object: of its metadata, which tells that it changed.
func watchOf(s references.Source) kindwatch.Kind {
	selector := fields.Set{"metadata.name": s.Name}
	if s.Namespace != "" {
		selector["metadata.namespace"] = s.Namespace
	}
	return kindwatch.Kind{
		GroupVersionKind: s.GroupVersionKind, Resource: s.Resource, ClusterScoped: s.Namespace == "", MetadataOnly: true, OnlyAnnotations: nothingKept,
		FieldSelector: selector.String(),
	}
}
