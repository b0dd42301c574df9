// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package references

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/masthead-dev/masthead/pkg/kindwatch"
	"github.com/masthead-dev/masthead/pkg/references"
)

// maxSources is how many sources are watched at most in one cluster.
const maxSources = 256

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
}

func newDependencies() *dependencies {
	return &dependencies{
		of: map[objectKey][]objectKey{}, requests: map[objectKey]Request{}, watched: map[objectKey][]kindwatch.Kind{},
		users: map[kindwatch.Kind]sets.Set[objectKey]{},
	}
}

// set makes sources all that an object depends on, and returns which kinds are to be watched from now on and which not any more, and
// whether all of them are.
func (d *dependencies) set(key objectKey, req Request, sources []references.Source) (start, stop []kindwatch.Kind, all bool) {
	before := d.watched[key]
	delete(d.of, key)
	delete(d.requests, key)
	delete(d.watched, key)
	all = true
	for _, s := range sources {
		d.of[key] = append(d.of[key], keyOfSource(s))
		kind := watchOf(s)
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

// usersOf are the requests of the objects that depend on what is watched.
func (d *dependencies) usersOf(kind kindwatch.Kind) []Request {
	var out []Request
	for key := range d.users[kind] {
		out = append(out, d.requests[key])
	}
	return out
}

// cycle is the way from an object back to itself, over what objects depend on; nil if there is none.
func (d *dependencies) cycle(from objectKey) []objectKey {
	seen := sets.New[objectKey]()
	var walk func(at objectKey, path []objectKey) []objectKey
	walk = func(at objectKey, path []objectKey) []objectKey {
		for _, next := range d.of[at] {
			if next == from {
				return append(path, at)
			}
			if seen.Has(next) {
				continue
			}
			seen.Insert(next)
			if found := walk(next, append(slices.Clone(path), at)); found != nil {
				return found
			}
		}
		return nil
	}
	return walk(from, nil)
}

// watchOf is the watch of one object: of its metadata, which tells that it changed.
func watchOf(s references.Source) kindwatch.Kind {
	selector := []string{"metadata.name=" + s.Name}
	if s.Namespace != "" {
		selector = append(selector, "metadata.namespace="+s.Namespace)
	}
	return kindwatch.Kind{
		GroupVersionKind: s.GroupVersionKind, Resource: s.Resource, ClusterScoped: s.Namespace == "", MetadataOnly: true,
		FieldSelector: strings.Join(selector, ","),
	}
}
