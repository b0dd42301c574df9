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

	"github.com/masthead-dev/masthead/pkg/apierror"
	"github.com/masthead-dev/masthead/pkg/condition"
)

// maxText is how many characters of an error are kept: servers control its text.
const maxText = 512

// Limits of a Resolver's cache for one cluster, and estimated sizes of its entries in bytes.
const (
	bytesOfKind     = 400
	bytesOfDocument = 256

	maxKindsOfDocument = 4_000
	maxDocuments       = 256
	maxKinds           = 16_000
)

// Reasons why kinds that a cluster serves are not resolved.
var (
	// errNotWatchable: the kind exists, but does not support list and watch.
	errNotWatchable = errors.New("it cannot be listed and watched")

	errMayNotAsk = errors.New("Masthead may not discover what the cluster serves") //nolint:staticcheck // A name has a capital letter.
)

// document is the discovery document of a group version, or the reason why there is none.
type document struct {
	// at is when it was requested. A kind that it lacks is not requested again for the duration believed.
	at       time.Time
	believed time.Duration

	// missing equals believed if something is not served, and is zero if the request failed.
	missing time.Duration

	kinds map[string]servedKind

	// err says why the request failed. A document that does not exist has no kinds and no error.
	err error
}

// servedKind is a kind in a document.
type servedKind struct {
	Kind

	// watchable reports whether it can be listed and watched.
	watchable bool
}

func (d *document) serves(kind string) bool { return d.err == nil && d.kinds[kind].watchable }

// kind returns a kind of the document, which has the given age.
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

// newDocument builds a document from a server's response. Only bounded parts of its errors are kept.
func newDocument(gv schema.GroupVersion, list *metav1.APIResourceList, err error) *document {
	d := &document{}
	switch {
	case err == nil && list != nil:
		d.kinds, d.err = servedKinds(gv, list)
	case apierror.IsNotServed(err):
	case apierrors.IsForbidden(err):
		d.err = apierrors.NewForbidden(schema.GroupResource{Group: gv.Group, Resource: "*"}, "", errMayNotAsk)
	case err != nil:
		d.err = newShownError(err)
	}
	return d
}

// servedKinds reads a document. Kinds that cannot be requested are omitted.
func servedKinds(gv schema.GroupVersion, list *metav1.APIResourceList) (map[string]servedKind, error) {
	kinds, withStatus, resources := map[string]servedKind{}, sets.New[string](), 0
	for i := range list.APIResources {
		r := &list.APIResources[i]
		if parent, sub, isSub := strings.Cut(r.Name, "/"); isSub {
			if sub == "status" {
				withStatus.Insert(parent)
			}
			continue // Subresources are not kept; most definitions have one.
		}
		if resources++; resources > maxKindsOfDocument {
			return nil, fmt.Errorf("%s has more than %d resources", gv, maxKindsOfDocument)
		}
		k, ok := newServedKind(gv, r)
		if have, exists := kinds[r.Kind]; ok && (!exists || k.preferredTo(have)) {
			kinds[r.Kind] = k
		}
	}
	for name, k := range kinds {
		k.StatusSubresource = withStatus.Has(k.Resource)
		kinds[name] = k
	}
	return kinds, nil
}

// newServedKind returns the kind of a resource of a document, unless it cannot be requested.
func newServedKind(gv schema.GroupVersion, r *metav1.APIResource) (servedKind, bool) {
	// Empty means that of the document. A resource of one group can have a kind of another.
	if r.Group != "" && r.Group != gv.Group || r.Version != "" && r.Version != gv.Version {
		return servedKind{}, false
	}
	k := servedKind{
		Kind:      Kind{GroupVersionKind: gv.WithKind(r.Kind), Resource: r.Name, ClusterScoped: !r.Namespaced},
		watchable: slices.Contains(r.Verbs, "list") && slices.Contains(r.Verbs, "watch"),
	}
	return k, validateGVK(k.GroupVersionKind) == nil && k.Validate() == nil
}

// preferredTo decides between two resources of one kind, independently of their order.
func (k servedKind) preferredTo(other servedKind) bool {
	if k.watchable != other.watchable {
		return k.watchable
	}
	return k.Resource < other.Resource
}

// documents is the cache of documents, bounded in number.
type documents struct {
	byVersion map[schema.GroupVersion]*document
	kinds     int
}

func newDocuments() documents {
	return documents{byVersion: map[schema.GroupVersion]*document{}}
}

// put adds a document, evicting the oldest ones if there is no room.
func (d *documents) put(gv schema.GroupVersion, doc *document) {
	d.remove(gv)
	for len(d.byVersion) > 0 && (len(d.byVersion) >= maxDocuments || d.kinds+len(doc.kinds) > maxKinds) {
		d.remove(d.oldest())
	}
	d.byVersion[gv] = doc
	d.kinds += len(doc.kinds)
}

// bytes estimates the memory that the documents take.
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

// maxRoot is the maximum length of an error root's text for the root to be kept.
const maxRoot = 256

// shownError is the stored form of a cluster's error: a bounded text, and its root if that is short, so that errors.Is
// still finds the connection's errors (multicluster.ErrClusterNotConnected).
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
	return &shownError{condition.Text(err.Error(), maxText), root}
}

func (e *shownError) Error() string { return e.text }

func (e *shownError) Unwrap() error { return e.root }
