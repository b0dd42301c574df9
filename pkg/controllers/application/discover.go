// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package application

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	appsv1alpha1 "github.com/masthead-dev/masthead/apis/apps/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/condition"
	"github.com/masthead-dev/masthead/pkg/controllers/application/appstatus"
	"github.com/masthead-dev/masthead/pkg/controllers/application/record"
	"github.com/masthead-dev/masthead/pkg/controllers/application/workload"
	"github.com/masthead-dev/masthead/pkg/kindwatch"
	"github.com/masthead-dev/masthead/pkg/multicluster"
)

// namespaceKind is the kind of an entry that says that a namespace may not be seen.
var namespaceKind = schema.GroupVersionKind{Version: "v1", Kind: "Namespace"} //nolint:gochecknoglobals // A constant.

// maxSought bounds the kinds that an Application asks for because of its discovery. An inventory is controlled by the
// Kustomization's author, and each kind in it costs memory and perhaps a request to the API server.
const maxSought = 128

// sought is what an Application discovers by, and the kinds involved.
type sought struct {
	kinds map[schema.GroupVersionKind]struct{}

	// since is the generation from which lists have everything it discovers by.
	since uint64

	// tooManyMarks reports whether the cluster has no room for its marks; leftOut are marks that too many others in the
	// namespace look for. tooManyKinds reports whether an inventory names too many kinds.
	tooManyMarks, tooManyKinds bool
	leftOut                    []record.Mark
}

// seek records what the Application discovers by. Anything it may not see is left out here, before any lookup.
func (s *scope) seek(ctx context.Context) sought {
	since, leftOut, ok := s.w.Wanted.Want(s.key, record.MarksWanted(s.app, s.visibility))
	out := sought{kinds: map[schema.GroupVersionKind]struct{}{}, since: since, leftOut: leftOut, tooManyMarks: !ok}
	if s.app.Spec.Discover == nil {
		return out
	}
	spec := record.Distinct(s.app.Spec.Discover, s.key.Namespace)
	for _, k := range spec.Kinds {
		out.kinds[schema.GroupVersionKind(k)] = struct{}{}
	}
	for _, source := range spec.Sources {
		if o := source.Object; o != nil && s.maySee(o.Namespace) {
			out.kinds[schema.GroupVersionKind{Group: o.Group, Version: o.Version, Kind: o.Kind}] = struct{}{}
		}
		gvk, key, has := record.ParseInventory(source, s.key.Namespace)
		if !has || !s.visibility.Namespace(key.Namespace) {
			continue
		}
		out.kinds[gvk] = struct{}{}
		for _, e := range s.inventory(ctx, gvk, key) {
			of, key, _ := e.Object() // Other entries are not kept.
			if _, known := out.kinds[of]; known || !s.maySee(key.Namespace) {
				continue
			}
			if len(out.kinds) >= maxSought {
				out.tooManyKinds = true
				break
			}
			out.kinds[of] = struct{}{}
		}
	}
	return out
}

// maySee reports whether an object may be seen before the scope of its kind is known.
func (s *scope) maySee(namespace string) bool {
	return s.visibility.Namespace(record.OrOwn(namespace, s.key.Namespace)) || s.visibility.AnyClusterScoped()
}

// inventory returns an inventory from the watch; there is none before the kind is watched.
func (s *scope) inventory(ctx context.Context, gvk schema.GroupVersionKind, key types.NamespacedName) []record.InventoryEntry {
	k := s.w.Ask(ctx, gvk, s.assessor)
	if !k.Watched {
		return nil
	}
	entry, err := s.w.Watcher.Entry(k.Kind, key)
	if m := record.GetMarkings(entry.Record); err == nil && m != nil && m.Inventory != nil {
		return m.Inventory.Entries
	}
	return nil
}

// admit marks a cluster-scoped kind as visible if the class allows it.
func admit(k *workload.NamedKind, s record.Visibility) {
	switch {
	case !k.Kind.ClusterScoped:
	case s.ClusterScoped(k.Kind):
		k.Watched, k.Unseen = true, nil
	default:
		k.Unseen = notAllowed(
			"The EnrollmentClass of the cluster does not let Applications of the namespace %q see %s.",
			s.Own,
			workload.Describe(k.GVK),
		)
	}
}

func notAllowed(format string, args ...any) *condition.Error {
	return &condition.Error{Reason: appsv1alpha1.ReasonNotAllowed, Message: multicluster.BoundedText(fmt.Sprintf(format, args...))}
}

// discover finds the discovered objects, after the named components were looked up.
func (s *scope) discover(kinds seenKinds, sought sought) *discovered {
	d := &discovered{scope: s, kinds: kinds, sought: sought, at: map[viewKey]int{}}
	if s.app.Spec.Discover == nil {
		return d
	}
	spec := record.Distinct(s.app.Spec.Discover, s.key.Namespace)
	d.uids = d.installedUIDs()
	d.uids[s.app.UID] = struct{}{} // It never discovers itself.
	if sought.tooManyMarks {
		d.tooMany("The Applications of the cluster discover by more marks than Masthead looks for.")
		return d
	}
	for _, source := range spec.Sources {
		d.bySource(spec, source)
	}
	d.held()
	if n := len(sought.leftOut); n > 0 {
		d.tooMany(
			fmt.Sprintf("More than %d Applications of the namespace look for the same marks: %d of the marks that this one looks for are ignored.",
				record.MaxUsesOfMark, n),
		)
	}
	for _, namespace := range spec.Namespaces {
		if !s.visibility.Namespace(namespace) {
			d.add(appstatus.NewComponentView(namespaceKind, types.NamespacedName{Name: namespace}, notAllowed(
				"The EnrollmentClass of the cluster does not let Applications of the namespace %q see it.", s.key.Namespace)))
		}
	}
	d.notServed = d.missingKinds(spec.Kinds)
	return d
}

// missingKinds returns the kinds that the cluster does not serve.
func (d *discovered) missingKinds(kinds []appsv1alpha1.DiscoveredKind) []string {
	var out []string
	for _, k := range kinds {
		gvk := schema.GroupVersionKind(k)
		if seen := d.kinds.find(gvk); seen != nil && seen.Unseen != nil && seen.Unseen.Reason == appsv1alpha1.ReasonKindNotServed {
			out = append(out, workload.Describe(gvk))
		}
	}
	return out
}

// installedUIDs are the objects that the Application names. They are not discovered as well.
func (d *discovered) installedUIDs() map[types.UID]struct{} {
	uids := map[types.UID]struct{}{}
	for name, c := range d.app.Spec.Components {
		gvk := schema.GroupVersionKind{Group: c.Group, Version: c.Version, Kind: c.Kind}
		k := d.kinds.find(gvk)
		if k == nil {
			continue
		}
		for _, o := range k.objects {
			if o.entry.Key.Name == componentName(name, c) && d.selector.belongs(o) {
				uids[o.entry.UID] = struct{}{}
			}
		}
	}
	return uids
}

// claim marks a discovered object for ownership, if the Application asks for it, the class consents, and the object can
// be owned.
func (d *discovered) claim(k *seenKind, e kindwatch.Entry, rec *record.Component) {
	if !d.ownsDiscovered() || e.Key.Namespace != d.key.Namespace || appliesOthers(k.GVK.GroupKind()) {
		return
	}
	same := func(o object) bool { return o.entry.UID == e.UID }
	if i := slices.IndexFunc(k.objects, same); i >= 0 {
		k.objects[i].discovered = true
		return
	}
	k.objects = append(k.objects, object{kind: k.Kind, entry: e, Component: rec, discovered: true})
}

// appliesOthers reports whether objects of a kind apply other objects, and prune them on deletion, also in other
// namespaces. They are never owned: the right to delete an Application does not include deleting all of these.
func appliesOthers(gk schema.GroupKind) bool {
	return gk == record.KustomizationGVK.GroupKind() || gk == record.FluxHelmReleaseGVK.GroupKind()
}

// ownsDiscovered reports whether discovered objects are owned.
func (s *scope) ownsDiscovered() bool { return s.asksToOwn() && s.visibility.OwnsDiscovered }

func (s *scope) asksToOwn() bool {
	d := s.app.Spec.Discover
	return d != nil && d.Ownership == appsv1alpha1.DiscoveryOwnershipOwned
}

// discoveredViews are the views of the discovered objects, with what keeps them from being owned.
func (f findings) discoveredViews() []appstatus.ComponentView {
	if !f.asksToOwn() || f.visibility.ObserveOnly {
		return f.discovered
	}
	for i := range f.discovered {
		v := &f.discovered[i]
		if v.Found == nil || v.Namespace != f.key.Namespace {
			continue
		}
		if !f.visibility.OwnsDiscovered {
			v.Problem = &condition.Error{
				Reason:  appsv1alpha1.ReasonOwnershipForbidden,
				Message: "The EnrollmentClass of the cluster does not let Applications own the objects that they discover.",
			}
			continue
		}
		f.blame(v)
	}
	return f.discovered
}

// blame records why an object could not be adopted.
func (f findings) blame(v *appstatus.ComponentView) {
	k := f.kinds.find(schema.GroupVersionKind{Group: v.Kind.Group, Version: v.Kind.Version, Kind: v.Kind.Kind})
	if k == nil {
		return
	}
	for _, o := range k.objects {
		_, owned := o.OwnedBy(f.app.UID)
		if o.discovered && o.entry.Key.Name == v.Name && !owned && !o.Deleting && !o.ControlledByAnother(f.app.UID) {
			v.Problem = f.refused(o)
			return
		}
	}
}
