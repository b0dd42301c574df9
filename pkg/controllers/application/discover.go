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

// seek records what the Application discovers by, and returns the kinds involved. Anything it may not see is left out
// here, before any lookup.
func (p *pass) seek(ctx context.Context) map[schema.GroupVersionKind]struct{} {
	p.sight = p.w.VisibilityIn(p.key.Namespace)
	since, leftOut, ok := p.w.Wanted.Want(p.key, record.MarksWanted(p.app, p.sight))
	p.wantedSince, p.leftOut, p.tooManyWanted = since, leftOut, !ok
	kinds := map[schema.GroupVersionKind]struct{}{}
	if p.app.Spec.Discover == nil {
		return kinds
	}
	d := record.Distinct(p.app.Spec.Discover, p.key.Namespace)
	for _, k := range d.Kinds {
		kinds[schema.GroupVersionKind(k)] = struct{}{}
	}
	for _, s := range d.Sources {
		if o := s.Object; o != nil && p.maySee(o.Namespace) {
			kinds[schema.GroupVersionKind{Group: o.Group, Version: o.Version, Kind: o.Kind}] = struct{}{}
		}
		gvk, key, has := record.ParseInventory(s, p.key.Namespace)
		if !has || !p.sight.Namespace(key.Namespace) {
			continue
		}
		kinds[gvk] = struct{}{}
		for _, e := range p.inventory(ctx, gvk, key) {
			of, key, _ := e.Object() // Other entries are not kept.
			if _, known := kinds[of]; known || !p.maySee(key.Namespace) {
				continue
			}
			if len(kinds) >= maxSought {
				p.tooManySought = true
				break
			}
			kinds[of] = struct{}{}
		}
	}
	return kinds
}

// maySee reports whether an object may be seen before the scope of its kind is known.
func (p *pass) maySee(namespace string) bool {
	return p.sight.Namespace(record.OrOwn(namespace, p.key.Namespace)) || p.sight.AnyClusterScoped()
}

// inventory returns an inventory from the watch; there is none before the kind is watched.
func (p *pass) inventory(ctx context.Context, gvk schema.GroupVersionKind, key types.NamespacedName) []record.InventoryEntry {
	k := p.w.Ask(ctx, gvk, p.assessor)
	if !k.Watched {
		return nil
	}
	entry, err := p.w.Watcher.Entry(k.Kind, key)
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
		k.Unseen = notAllowed("The EnrollmentClass of the cluster does not let Applications of the namespace %q see %s.", s.Own, workload.Describe(k.GVK))
	}
}

func notAllowed(format string, args ...any) *condition.Error {
	return &condition.Error{Reason: appsv1alpha1.ReasonNotAllowed, Message: multicluster.BoundedText(fmt.Sprintf(format, args...))}
}

// discover finds the discovered objects, after the named components were looked up.
func (p *pass) discover() {
	if p.app.Spec.Discover == nil {
		return
	}
	spec := record.Distinct(p.app.Spec.Discover, p.key.Namespace)
	d := &discovered{pass: p, at: map[viewKey]int{}, uids: p.installedUIDs()}
	d.uids[p.app.UID] = struct{}{} // It never discovers itself.
	if p.tooManyWanted {
		p.undiscovered = true
		d.add(appstatus.NewComponentView(record.ApplicationKind.GroupVersionKind, types.NamespacedName{Name: p.key.Name}, &condition.Error{
			Reason: appsv1alpha1.ReasonTooManyDiscovered, Message: "The Applications of the cluster discover by more marks than Masthead looks for.",
		}))
		p.discovered = d.views
		return
	}
	for _, s := range spec.Sources {
		d.bySource(spec, s)
	}
	d.held()
	if n := len(p.leftOut); n > 0 {
		p.undiscovered = true
		d.add(appstatus.NewComponentView(record.ApplicationKind.GroupVersionKind, types.NamespacedName{Name: p.key.Name}, &condition.Error{
			Reason: appsv1alpha1.ReasonTooManyDiscovered, Message: fmt.Sprintf(
				"More than %d Applications of the namespace look for the same marks: %d of the marks that this one looks for are ignored.",
				record.MaxUsesOfMark, n),
		}))
	}
	for _, namespace := range spec.Namespaces {
		if !p.sight.Namespace(namespace) {
			d.add(appstatus.NewComponentView(namespaceKind, types.NamespacedName{Name: namespace}, notAllowed(
				"The EnrollmentClass of the cluster does not let Applications of the namespace %q see it.", p.key.Namespace)))
		}
	}
	p.discovered = d.views
	p.notServed = p.missingKinds(spec.Kinds)
}

// missingKinds returns the kinds that the cluster does not serve.
func (p *pass) missingKinds(kinds []appsv1alpha1.DiscoveredKind) []string {
	var out []string
	for _, k := range kinds {
		gvk := schema.GroupVersionKind(k)
		if seen := p.seen(gvk); seen != nil && seen.Unseen != nil && seen.Unseen.Reason == appsv1alpha1.ReasonKindNotServed {
			out = append(out, workload.Describe(gvk))
		}
	}
	return out
}

// installedUIDs are the objects that the Application names. They are not discovered as well.
func (p *pass) installedUIDs() map[types.UID]struct{} {
	uids := map[types.UID]struct{}{}
	for name, c := range p.app.Spec.Components {
		gvk := schema.GroupVersionKind{Group: c.Group, Version: c.Version, Kind: c.Kind}
		k := p.seen(gvk)
		if k == nil {
			continue
		}
		for _, o := range k.objects {
			if o.entry.Key.Name == componentName(name, c) && p.selector.belongs(o) {
				uids[o.entry.UID] = struct{}{}
			}
		}
	}
	return uids
}

// seen returns a kind of the pass.
func (p *pass) seen(gvk schema.GroupVersionKind) *seenKind {
	for i := range p.kinds {
		if p.kinds[i].GVK == gvk && !p.kinds[i].Leaving {
			return &p.kinds[i]
		}
	}
	return nil
}

// claim marks a discovered object for ownership, if the Application asks for it, the class consents, and the object can
// be owned.
func (p *pass) claim(k *seenKind, e kindwatch.Entry, rec *record.Component) {
	if !p.ownsDiscovered() || e.Key.Namespace != p.key.Namespace || appliesOthers(k.GVK.GroupKind()) {
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
func (p *pass) ownsDiscovered() bool { return p.asksToOwn() && p.sight.OwnsDiscovered }

func (p *pass) asksToOwn() bool {
	d := p.app.Spec.Discover
	return d != nil && d.Ownership == appsv1alpha1.DiscoveryOwnershipOwned
}

// discoveredViews are the views of the discovered objects, with what keeps them from being owned.
func (p *pass) discoveredViews() []appstatus.ComponentView {
	if !p.asksToOwn() || p.sight.ObserveOnly {
		return p.discovered
	}
	for i := range p.discovered {
		v := &p.discovered[i]
		if v.Found == nil || v.Namespace != p.key.Namespace {
			continue
		}
		if !p.sight.OwnsDiscovered {
			v.Problem = &condition.Error{
				Reason: appsv1alpha1.ReasonOwnershipForbidden, Message: "The EnrollmentClass of the cluster does not let Applications own the objects that they discover.",
			}
			continue
		}
		p.blame(v)
	}
	return p.discovered
}

// blame records why an object could not be adopted.
func (p *pass) blame(v *appstatus.ComponentView) {
	k := p.seen(schema.GroupVersionKind{Group: v.Kind.Group, Version: v.Kind.Version, Kind: v.Kind.Kind})
	if k == nil {
		return
	}
	for _, o := range k.objects {
		_, owned := o.OwnedBy(p.app.UID)
		if o.discovered && o.entry.Key.Name == v.Name && !owned && !o.Deleting && !o.ControlledByAnother(p.app.UID) {
			v.Problem = p.refused(o)
			return
		}
	}
}
