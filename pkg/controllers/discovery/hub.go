// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package discovery

import (
	"slices"
	"strings"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/masthead-dev/masthead/pkg/crossplane"
	"github.com/masthead-dev/masthead/pkg/kindwatch"
)

// Owners of kinds in the hub's watcher.
const (
	ownerDefinitions = "definitions"
	ownerObjects     = "objects"
)

// hub caches the hub's mirrored kinds. Everything is watched and converted into mirrors once, for all clusters.
type hub struct {
	watcher *kindwatch.Watcher

	// changed is called when something in the hub has changed. It must not block.
	changed func()

	// refreshing is held while the watched kinds are computed and set. It is taken before mu.
	refreshing sync.Mutex

	mu    sync.Mutex
	kinds map[string]*hubKind
}

// hubKind is the hub's state of one mirrored kind.
type hubKind struct {
	mirroredKind

	// definition is nil if the hub does not serve the kind. known reports whether this has been determined.
	known      bool
	definition *mirror
	kind       kindwatch.Kind

	// objects are up to date unless stale. made is by the UID of the hub's object.
	objects []*mirror
	stale   bool
	made    map[types.UID]madeMirror
}

// madeMirror is the mirror of a version of an object, or nil if its label withholds it. composed is the kind of the
// composite of a Composition.
type madeMirror struct {
	version  string
	mirror   *mirror
	composed schema.GroupKind
}

// view is a snapshot of one kind in the hub.
type view struct {
	// known reports whether the hub answered. Unknown kinds are left as they are in all clusters.
	known bool

	// definition is nil if the hub does not have the kind.
	definition *mirror
	kind       kindwatch.Kind
	objects    []*mirror
}

func newHub(changed func()) *hub {
	h := &hub{changed: changed, kinds: map[string]*hubKind{}}
	for _, k := range mirroredKinds() {
		h.kinds[k.crd()] = &hubKind{mirroredKind: k}
	}
	return h
}

// watchDefinitions starts watching which of the kinds the hub has.
func (h *hub) watchDefinitions() {
	var kinds []kindwatch.Kind
	for _, k := range mirroredKinds() {
		kinds = append(kinds, crdKind(k.crd(), false))
	}
	h.watcher.Set(ownerDefinitions, kinds...)
}

// handle is the handler of the hub's watcher.
func (h *hub) handle(e kindwatch.Event) {
	if e.Initial {
		// The end of the initial list triggers one full refresh; each object would trigger another.
		return
	}
	if e.Kind.GroupVersionKind == crossplane.CRDGVK {
		h.refreshDefinitions()
	} else {
		h.outdate(e.Kind)
	}
	h.changed()
}

// refreshDefinitions determines which of the kinds the hub has, and watches their objects.
func (h *hub) refreshDefinitions() {
	h.refreshing.Lock()
	defer h.refreshing.Unlock()
	var kinds []kindwatch.Kind
	for _, k := range mirroredKinds() {
		if kind, ok := h.refreshDefinition(k); ok {
			kinds = append(kinds, kind)
		}
	}
	// The watcher does not call its handler from Set.
	h.watcher.Set(ownerObjects, kinds...)
	for _, kind := range kinds {
		h.watcher.Retry(kind.GroupResource())
	}
}

func (h *hub) refreshDefinition(k mirroredKind) (kindwatch.Kind, bool) {
	crd, err := h.watcher.Get(crdKind(k.crd(), false), types.NamespacedName{Name: k.crd()})
	h.mu.Lock()
	defer h.mu.Unlock()
	s := h.kinds[k.crd()]
	switch {
	case apierrors.IsNotFound(err):
		*s = hubKind{mirroredKind: k, known: true}
		return s.kind, false
	case err != nil:
		s.known = false
		return s.kind, s.definition != nil
	}
	kind, served := servedKind(crd, k.resource)
	if !served {
		*s = hubKind{mirroredKind: k}
		return kind, false
	}
	if s.kind != kind {
		*s = hubKind{mirroredKind: k, kind: kind, stale: true}
	}
	s.known = true
	if definition := newDefinitionMirror(crd); s.definition == nil || s.definition.hash != definition.hash {
		s.definition = definition
	}
	return kind, true
}

// outdate marks the objects of a kind as stale, and with definitions those that depend on them.
func (h *hub) outdate(kind kindwatch.Kind) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, s := range h.kinds {
		if s.kind == kind || s.resource == resourceComposition && kind.Resource == resourceXRD {
			s.stale = true
		}
	}
}

// view returns a snapshot of a kind in the hub.
func (h *hub) view(crd string) view {
	h.mu.Lock()
	defer h.mu.Unlock()
	s := h.kinds[crd]
	if !s.known {
		return view{}
	}
	if s.definition == nil {
		return view{known: true}
	}
	state, _ := h.watcher.State(s.kind)
	if state != kindwatch.StateSynced || s.stale && !h.refresh(s) {
		return view{}
	}
	return view{known: true, definition: s.definition, kind: s.kind, objects: s.objects}
}

// refresh rebuilds the mirrors of changed objects, except those that are withheld: by a label, or, of Compositions, by
// that of the definition of their composite. The caller holds mu.
func (h *hub) refresh(s *hubKind) bool {
	objects, err := h.watcher.List(s.kind)
	if err != nil {
		return false
	}
	withheld := sets.New[schema.GroupKind]()
	xrds := h.kinds[resourceXRD+"."+crossplaneGroup]
	if s.resource == resourceComposition && (!xrds.known || xrds.definition != nil) {
		definitions, err := h.watcher.List(xrds.kind)
		if err != nil {
			return false
		}
		for _, definition := range definitions {
			xrd := definition.Object()
			if spec, _ := xrd.Object["spec"].(map[string]any); crossplane.IsWithheld(xrd) {
				withheld.Insert(schema.GroupKind{Group: text(spec, "group"), Kind: text(spec, "names", "kind")})
			}
		}
	}
	made := make(map[types.UID]madeMirror, len(objects))
	mirrors := make([]*mirror, 0, len(objects))
	for _, item := range objects {
		m := s.made[item.UID]
		if m.version != item.ResourceVersion {
			obj := item.Object()
			spec, _ := obj.Object["spec"].(map[string]any)
			m = madeMirror{version: item.ResourceVersion, composed: composedKind(spec)}
			if !crossplane.IsWithheld(obj) {
				m.mirror = mirrorFor(s.mirroredKind, obj)
			}
		}
		made[item.UID] = m
		if m.mirror != nil && !withheld.Has(m.composed) {
			mirrors = append(mirrors, m.mirror)
		}
	}
	slices.SortFunc(mirrors, func(a, b *mirror) int { return strings.Compare(a.name(), b.name()) })
	s.made, s.objects, s.stale = made, mirrors, false
	return true
}
