// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package kindwatch

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
)

// What a Resolver keeps of one cluster at most, and about how many bytes that takes.
const (
	bytesOfKind     = 400
	bytesOfDocument = 256

	maxKindsOfDocument = 4_000
	maxDocuments       = 256
	maxKinds           = 16_000
)

// Why kinds are not known that a cluster serves.
var (
	// errNotWatchable: the kind is there for other things.
	errNotWatchable = errors.New("it cannot be listed and watched")

	errMayNotAsk = errors.New("Masthead may not ask what the cluster serves") //nolint:staticcheck // A name has a capital letter.
)

// document is the discovery document of a group version, or why there is none.
type document struct {
	// at is when it was asked for, and believed is for how long what it does not have is not asked for again.
	at       time.Time
	believed time.Duration

	// missing is believed if that is because something is not served; zero if asking failed.
	missing time.Duration

	kinds map[string]servedKind

	// err says why it could not be had. One that is not there has no kinds and no error.
	err error
}

// servedKind is a kind that a document has.
type servedKind struct {
	Kind

	// watchable is whether it can be listed and watched.
	watchable bool
}

func (d *document) serves(kind string) bool { return d.err == nil && d.kinds[kind].watchable }

// kind returns a kind of the document, which has a certain age.
func (d *document) kind(gvk schema.GroupVersionKind, age time.Duration) (Kind, error) {
	if d.serves(gvk.Kind) {
		return d.kinds[gvk.Kind].Kind, nil
	}
	e := &resolveError{gvk: gvk, again: max(0, d.believed-age)}
	_, known := d.kinds[gvk.Kind]
	switch {
	case d.err != nil:
		e.err = d.err
	case known:
		e.notServed, e.err = true, errNotWatchable
	default:
		e.notServed = true
	}
	return Kind{}, e
}

// newDocument makes a document of what a server answered. Of its errors, nothing is kept that it could make large.
func newDocument(gv schema.GroupVersion, list *metav1.APIResourceList, err error) *document {
	d := &document{}
	switch {
	case err == nil && list != nil:
		d.kinds, d.err = kindsOf(gv, list)
	case isNotServed(err):
	case apierrors.IsForbidden(err):
		d.err = apierrors.NewForbidden(schema.GroupResource{Group: gv.Group, Resource: "*"}, "", errMayNotAsk)
	case err != nil:
		d.err = newShownError(err)
	}
	return d
}

// kindsOf reads a document. What could not be asked for is left out, whatever the server says.
func kindsOf(gv schema.GroupVersion, list *metav1.APIResourceList) (map[string]servedKind, error) {
	kinds, withStatus, resources := map[string]servedKind{}, sets.New[string](), 0
	for i := range list.APIResources {
		r := &list.APIResources[i]
		if parent, sub, isSub := strings.Cut(r.Name, "/"); isSub {
			if sub == "status" {
				withStatus.Insert(parent)
			}
			continue // Of subresources nothing is kept, and most definitions have one.
		}
		if resources++; resources > maxKindsOfDocument {
			return nil, fmt.Errorf("%s has more than %d resources", gv, maxKindsOfDocument)
		}
		// Empty means that of the document. A resource can be listed in one group and be of a kind of another.
		if r.Group != "" && r.Group != gv.Group || r.Version != "" && r.Version != gv.Version {
			continue
		}
		k := servedKind{
			Kind:      Kind{GroupVersionKind: gv.WithKind(r.Kind), Resource: r.Name, ClusterScoped: !r.Namespaced},
			watchable: slices.Contains(r.Verbs, "list") && slices.Contains(r.Verbs, "watch"),
		}
		if validateGVK(k.GroupVersionKind) != nil || k.Validate() != nil {
			continue
		}
		if have, ok := kinds[r.Kind]; !ok || k.preferredTo(have) {
			kinds[r.Kind] = k
		}
	}
	for name, k := range kinds {
		k.StatusSubresource = withStatus.Has(k.Resource)
		kinds[name] = k
	}
	return kinds, nil
}

// preferredTo decides between two resources of one kind: by something that does not depend on their order.
func (k servedKind) preferredTo(other servedKind) bool {
	if k.watchable != other.watchable {
		return k.watchable
	}
	return k.Resource < other.Resource
}

// documents are those that are kept, not more than a number.
type documents struct {
	byVersion map[schema.GroupVersion]*document
	kinds     int
}

func newDocuments() documents {
	return documents{byVersion: map[schema.GroupVersion]*document{}}
}

// put keeps a document, instead of the oldest ones if there is no room.
func (d *documents) put(gv schema.GroupVersion, doc *document) {
	d.remove(gv)
	for len(d.byVersion) > 0 && (len(d.byVersion) >= maxDocuments || d.kinds+len(doc.kinds) > maxKinds) {
		d.remove(d.oldest())
	}
	d.byVersion[gv] = doc
	d.kinds += len(doc.kinds)
}

// bytes is about what the documents take.
func (d *documents) bytes() int64 {
	return int64(d.kinds)*bytesOfKind + int64(len(d.byVersion))*bytesOfDocument
}

func (d *documents) oldest() schema.GroupVersion {
	var oldest schema.GroupVersion
	first := true
	for gv, doc := range d.byVersion {
		if first || doc.at.Before(d.byVersion[oldest].at) {
			oldest, first = gv, false
		}
	}
	return oldest
}

func (d *documents) remove(gv schema.GroupVersion) {
	if doc := d.byVersion[gv]; doc != nil {
		d.kinds -= len(doc.kinds)
		delete(d.byVersion, gv)
	}
}

func (d *documents) forget(group string) {
	for gv := range d.byVersion {
		if gv.Group == group {
			d.remove(gv)
		}
	}
}

// maxRoot is how long the text of an error's root may be for the root to be kept.
const maxRoot = 256

// shownError is what is kept of an error of a cluster: a bounded text, and its root if that is short, so that errors.Is
// still finds what the connection says (multicluster.ErrClusterNotConnected).
type shownError struct {
	text string
	root error
}

func newShownError(err error) *shownError {
	root := err
	for next := errors.Unwrap(root); next != nil; next = errors.Unwrap(root) {
		root = next
	}
	if len(root.Error()) > maxRoot {
		root = nil
	}
	return &shownError{boundedText(err), root}
}

func (e *shownError) Error() string { return e.text }

func (e *shownError) Unwrap() error { return e.root }
