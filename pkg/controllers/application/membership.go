// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package application

import (
	"fmt"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	appsv1alpha1 "github.com/masthead-dev/masthead/apis/apps/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/condition"
	"github.com/masthead-dev/masthead/pkg/controllers/application/appstatus"
	"github.com/masthead-dev/masthead/pkg/controllers/application/bounds"
	"github.com/masthead-dev/masthead/pkg/controllers/application/record"
	"github.com/masthead-dev/masthead/pkg/controllers/application/workload"
	"github.com/masthead-dev/masthead/pkg/kindwatch"
)

// object is an object that names an Application, or that it owns or discovered.
type object struct {
	kind  kindwatch.Kind
	entry kindwatch.Entry
	*record.Component

	// discovered reports whether the object belongs to the Application by discovery, and is to be owned.
	discovered bool
}

func (o object) key() workload.ObjectKey {
	return workload.ObjectKey{Kind: o.kind, NamespacedName: o.entry.Key}
}

// seenKind is a kind with its objects that name an Application or are owned by it.
type seenKind struct {
	workload.NamedKind
	objects []object

	// unnamed reports whether the Application only discovers objects of the kind, so that the annotation alone selects
	// none.
	unnamed bool
}

// seenKinds are the kinds relevant to an Application.
type seenKinds []seenKind

// find returns the kind that an Application names or discovers.
func (kinds seenKinds) find(gvk schema.GroupVersionKind) *seenKind {
	for i := range kinds {
		if kinds[i].GVK == gvk && !kinds[i].Leaving {
			return &kinds[i]
		}
	}
	return nil
}

// selection holds the objects that belong to an Application, and the actions required.
type selection struct {
	// selected is the number of objects that belong to the Application.
	selected int32

	// adopt are the objects that need a reference to the Application, release those that must lose theirs.
	adopt, release []object

	// leaving are the objects of no longer named kinds that still have a reference, written or not.
	leaving []object
}

// A selector decides which objects belong to an Application: Selecting Components in the KEP.
type selector struct {
	key    record.ApplicationKey
	uid    types.UID
	labels labels.Selector

	// orphaning reports whether the Application is being deleted with the orphan policy.
	orphaning bool
}

// newSelector returns the selector of an Application. The definition rejects invalid selectors.
func newSelector(app *appsv1alpha1.Application) (selector, error) {
	matches, err := app.Spec.Selector.AsSelector()
	if err != nil {
		return selector{}, fmt.Errorf("cannot parse the selector: %w", err)
	}
	return selector{
		key: types.NamespacedName{Namespace: app.Namespace, Name: app.Name}, uid: app.UID, labels: matches,
		orphaning: record.IsOrphaning(app),
	}, nil
}

// belongs reports whether an object belongs to the Application: it is in the Application's namespace, its annotation
// names the Application, and the selector matches its labels. The caller has checked its kind. An Application does not
// belong to itself: it would be its own owner.
func (s selector) belongs(o object) bool {
	return o.Application == s.key && o.entry.Key.Namespace == s.key.Namespace && o.entry.UID != s.uid && s.labels.Matches(o.Labels)
}

// sort decides about the objects of the kinds that an Application names or no longer names. patched reports whether an
// object's references were written and the watch does not show it yet.
func (s selector) sort(kinds []seenKind, patched func(object) bool) selection {
	members, undecided := s.members(kinds), unseenKinds(kinds)
	out := selection{selected: bounds.Count(len(members))}
	for _, kind := range kinds {
		for _, o := range kind.objects {
			if kind.Leaving && undecided.Has(kind.GVK.GroupKind()) {
				// The version that the spec names now decides whether it belongs to the Application.
				if _, owned := o.OwnedBy(s.uid); owned {
					out.leaving = append(out.leaving, o)
				}
				continue
			}
			s.decide(&out, o, kind.Leaving, members.Has(o.entry.UID), patched)
		}
	}
	out.adopt, out.release = s.once(out.adopt), s.once(out.release)
	return out
}

// unseenKinds are the kinds, in any version, that an Application names and that cannot be observed.
func unseenKinds(kinds []seenKind) sets.Set[schema.GroupKind] {
	out := sets.New[schema.GroupKind]()
	for _, kind := range kinds {
		if !kind.Leaving && kind.Unseen != nil {
			out.Insert(kind.GVK.GroupKind())
		}
	}
	return out
}

// members are the objects that belong to the Application. An object seen in several versions belongs to it if one of
// them does: a spec that changes the version of a kind releases nothing.
func (s selector) members(kinds []seenKind) sets.Set[types.UID] {
	members := sets.New[types.UID]()
	for _, kind := range kinds {
		for _, o := range kind.objects {
			if !kind.Leaving && (o.discovered || !kind.unnamed && s.belongs(o)) {
				members.Insert(o.entry.UID)
			}
		}
	}
	return members
}

// decide decides about one object, seen as one kind.
//
// An object with a controller is deleted with it, so the Application owns the controller, as the KEP says of aggregated
// objects: the object is selected and not owned. Owned, it would outlive its controller. A reference written before it
// had a controller, or by an earlier version of Masthead, is released.
//
// While the Application is being orphaned, everything is released. The garbage collector does that as well, but may
// miss an object adopted at the moment of deletion, and would delete it once the Application is gone.
func (s selector) decide(out *selection, o object, leaving, member bool, patched func(object) bool) {
	_, owned := o.OwnedBy(s.uid)
	ownable := member && !s.orphaning && !o.ControlledByAnother(s.uid)
	release := owned && !ownable && !o.ControlledBy(s.uid)
	if leaving && release && !o.Deleting {
		out.leaving = append(out.leaving, o)
	}
	if o.Deleting || patched(o) {
		// The garbage collector handles it, or the watch will show a newer version.
		return
	}
	if ownable && !owned {
		out.adopt = append(out.adopt, o)
	}
	if release {
		out.release = append(out.release, o)
	}
}

// once removes duplicates of objects seen in several versions of their kind.
func (s selector) once(objects []object) []object {
	seen := sets.New[types.UID]()
	out := objects[:0]
	for _, o := range objects {
		if !seen.Has(o.entry.UID) {
			seen.Insert(o.entry.UID)
			out = append(out, o)
		}
	}
	return out
}

// views are the components that a spec names, as far as they can be observed.
func (s selector) views(app *appsv1alpha1.Application, kinds []seenKind, refused func(object) *condition.Error) []appstatus.ComponentView {
	byGVK := make(map[schema.GroupVersionKind]*seenKind, len(kinds))
	named := make(map[schema.GroupVersionKind]map[string]object, len(kinds))
	for i := range kinds {
		if kinds[i].Leaving {
			continue
		}
		gvk := kinds[i].GVK
		byGVK[gvk] = &kinds[i]
		named[gvk] = map[string]object{}
		for _, o := range kinds[i].objects {
			if o.Application == s.key {
				named[gvk][o.entry.Key.Name] = o
			}
		}
	}
	out := make([]appstatus.ComponentView, 0, len(app.Spec.Components))
	for name, kind := range app.Spec.Components {
		gvk := schema.GroupVersionKind{Group: kind.Group, Version: kind.Version, Kind: kind.Kind}
		view := appstatus.ComponentView{Name: name, Kind: kind}
		if k := byGVK[gvk]; k != nil {
			view.Unseen, view.Syncing = k.Unseen, k.Syncing
			if k.Kind.ClusterScoped {
				view.Unseen, view.Syncing = workload.ClusterScoped(gvk), false
			}
		}
		if o, ok := named[gvk][componentName(name, kind)]; ok && view.Unseen == nil {
			s.look(&view, o, refused)
		}
		out = append(out, view)
	}
	return out
}

// componentName is the object name of a component.
func componentName(component string, kind appsv1alpha1.ComponentKind) string {
	if kind.Name != "" {
		return kind.Name
	}
	return component
}

// look completes the view of a component whose object has the annotation.
func (s selector) look(view *appstatus.ComponentView, o object, refused func(object) *condition.Error) {
	view.Found = o.Component
	if !s.belongs(o) {
		view.Problem = &condition.Error{Reason: appsv1alpha1.ReasonLabelsDoNotMatch, Message: "The selector of the Application does not match the labels of the object."}
		return
	}
	view.Installed = true
	if _, owned := o.OwnedBy(s.uid); !owned && !o.Deleting && !o.ControlledByAnother(s.uid) {
		view.Problem = refused(o)
	}
}
