// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package application

import (
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	appsv1alpha1 "github.com/masthead-dev/masthead/apis/apps/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/condition"
	"github.com/masthead-dev/masthead/pkg/controllers/application/appstatus"
	"github.com/masthead-dev/masthead/pkg/controllers/application/record"
	"github.com/masthead-dev/masthead/pkg/controllers/application/workload"
	"github.com/masthead-dev/masthead/pkg/kindwatch"
)

// discovered collects the objects that an Application discovers: each once, up to the limit.
type discovered struct {
	*scope
	kinds  seenKinds
	sought sought
	views  []appstatus.ComponentView
	at     map[viewKey]int

	// uids are the UIDs of the objects, which can be seen in several versions.
	uids map[types.UID]struct{}

	// heldAll reports whether other objects cannot be known before an inventory is read.
	heldAll bool
	full    bool

	// undiscovered reports whether some objects may not be known yet, unlisted whether a kind has to be listed first.
	// notServed are the kinds that the cluster does not serve.
	undiscovered, unlisted bool
	notServed              []string
}

// viewKey identifies the subject of a view.
type viewKey struct {
	schema.GroupKind
	types.NamespacedName
}

func keyOfView(v appstatus.ComponentView) viewKey {
	return viewKey{
		schema.GroupKind{Group: v.Kind.Group, Kind: v.Kind.Kind}, types.NamespacedName{Namespace: v.Namespace, Name: v.Kind.Name},
	}
}

// bySource finds the objects of one source.
func (d *discovered) bySource(spec *appsv1alpha1.Discovery, s appsv1alpha1.DiscoverySource) {
	if o := s.Object; o != nil {
		gvk := schema.GroupVersionKind{Group: o.Group, Version: o.Version, Kind: o.Kind}
		d.expect(gvk, types.NamespacedName{Namespace: record.OrOwn(o.Namespace, d.key.Namespace), Name: o.Name}, "")
		return
	}
	if gvk, key, ok := record.ParseInventory(s, d.key.Namespace); ok && d.byInventory(gvk, key, len(spec.Kinds) > 0) {
		return
	}
	for _, kind := range spec.Kinds {
		d.byMarks(spec, s, schema.GroupVersionKind(kind))
	}
}

// byInventory finds the objects in an inventory. It returns false if none can be read and marks are used instead.
func (d *discovered) byInventory(gvk schema.GroupVersionKind, key types.NamespacedName, marks bool) (done bool) {
	if !d.visibility.Namespace(key.Namespace) {
		// It may not be seen, even if the kind is watched for another source.
		if !marks {
			d.expect(gvk, key, "")
		}
		return !marks
	}
	k := d.kinds.find(gvk)
	if listed, syncing := d.listed(k); !listed {
		if marks && !syncing {
			return false
		}
		d.expect(gvk, key, "")
		d.heldAll = d.heldAll || syncing
		d.undiscovered = true
		return true
	}
	entry, err := d.w.Watcher.Entry(k.Kind, key)
	m := record.GetMarkings(entry.Record)
	known := err == nil && m != nil && m.Inventory != nil
	if !known && marks {
		return false
	}
	d.expect(gvk, key, "")
	switch {
	case err != nil:
		d.undiscovered = true
	case !known:
		d.undiscovered = true
		d.replace(appstatus.NewComponentView(gvk, key, &condition.Error{
			Reason: appsv1alpha1.ReasonNoInventory, Message: "It has no inventory of what it applied; name the kinds in spec.discover.",
		}))
	default:
		d.entries(m.Inventory)
		if strange := m.Inventory.Strange.Problem(key.Name, d.visibility.Namespace); strange != nil {
			d.undiscovered = true
			d.add(appstatus.NewComponentView(gvk, types.NamespacedName{Namespace: key.Namespace}, strange))
		}
	}
	return true
}

// listed reports whether the kind has been listed with its marks, and syncing whether it may be soon.
func (d *discovered) listed(k *seenKind) (listed, syncing bool) {
	switch {
	case k == nil:
		return false, false
	case k.Unseen != nil:
		return false, k.Syncing
	}
	syncing = d.pending(k)
	return !syncing, syncing
}

// entries finds the objects of the inventory's entries.
func (d *discovered) entries(i *record.Inventory) {
	unseen := 0
	for _, e := range i.Entries {
		gvk, key, _ := e.Object() // Other entries are not kept.
		if gvk.GroupKind() == record.ApplicationKind.GroupKind() {
			// Two Applications that follow one inventory naming both would keep each other from becoming healthy.
			continue
		}
		if !d.visible(gvk, key) || d.full {
			unseen++
			continue
		}
		d.expect(gvk, key, "An inventory of Flux names it, but it does not exist or does not have the label of Flux.")
	}
	if unseen > 0 {
		d.add(appstatus.NewComponentView(namespaceKind, types.NamespacedName{}, notAllowed(
			"Some objects that an inventory names are outside of what this Application observes: they are not in the namespace %q, nor in one that"+
				" spec.discover.namespaces names and the EnrollmentClass allows.", d.key.Namespace)))
	}
	if i.More {
		d.overflow()
	}
}

// visible reports whether an object in an inventory may be seen. It depends on the inventory, the class and the kind's
// scope.
func (d *discovered) visible(gvk schema.GroupVersionKind, key types.NamespacedName) bool {
	if key.Namespace != "" {
		return slices.Contains(d.visibility.Namespaces(d.app.Spec.Discover.Namespaces), key.Namespace)
	}
	k := d.kinds.find(gvk)
	return k != nil && (k.Unseen == nil || k.Unseen.Reason != appsv1alpha1.ReasonNotAllowed)
}

// expect looks for a single object, which is Missing if it does not exist.
func (d *discovered) expect(gvk schema.GroupVersionKind, key types.NamespacedName, missing string) {
	k := d.kinds.find(gvk)
	if k == nil && d.sought.tooManyKinds {
		d.overflow()
		return
	}
	if k != nil && k.Kind.ClusterScoped {
		key.Namespace = ""
	}
	view := appstatus.NewComponentView(gvk, key, nil)
	switch {
	case key.Namespace != "" && !d.visibility.Namespace(key.Namespace):
		// Nothing else is reported, whether or not it exists.
		view.Unseen = notAllowed("The EnrollmentClass of the cluster does not let Applications of the namespace %q see it.", d.key.Namespace)
	case k == nil || k.Unseen == nil && d.pending(k):
		d.undiscovered = true
		view.Unseen, view.Syncing = workload.StateProblem(kindwatch.StateSyncing, gvk), true
	case k.Unseen != nil:
		d.undiscovered = true
		view.Unseen, view.Syncing = k.Unseen, k.Syncing
	default:
		entry, err := d.w.Watcher.Entry(k.Kind, key)
		switch rec := record.GetComponent(entry.Record); {
		case apierrors.IsNotFound(err):
		case err != nil:
			d.undiscovered = true
			view.Unseen, view.Syncing = workload.StateProblem(kindwatch.StateSyncing, gvk), true
		case rec != nil:
			d.found(k, entry, rec)
			return
		}
		if missing == "" {
			missing = fmt.Sprintf("There is no %s %q%s.", gvk.Kind, key.Name, inNamespace(key.Namespace))
		}
		view.Problem = &condition.Error{Reason: appsv1alpha1.ReasonNotFound, Message: missing}
	}
	d.add(view)
}

func inNamespace(namespace string) string {
	if namespace == "" {
		return ""
	}
	return fmt.Sprintf(" in the namespace %q", namespace)
}

// byMarks finds the objects of a kind with the marks of a source.
func (d *discovered) byMarks(spec *appsv1alpha1.Discovery, s appsv1alpha1.DiscoverySource, gvk schema.GroupVersionKind) {
	k := d.kinds.find(gvk)
	switch {
	case k == nil || k.Unseen != nil && k.Unseen.Reason == appsv1alpha1.ReasonKindNotServed:
		// A kind that is not served has no objects. A condition reports it (notServed).
		return
	case k.Syncing || k.Unseen == nil && d.pending(k):
		d.holdKind(gvk)
		return
	case k.Unseen != nil:
		d.add(appstatus.NewComponentView(gvk, types.NamespacedName{}, k.Unseen))
		return
	}
	for _, namespace := range d.visibility.Namespaces(spec.Namespaces) {
		if (namespace == "") == k.Kind.ClusterScoped && !d.byMarksIn(namespace, s, k) {
			d.holdKind(gvk)
			return
		}
	}
}

// byMarksIn finds those of a namespace. It returns false if the objects of the kind are no longer known.
func (d *discovered) byMarksIn(namespace string, s appsv1alpha1.DiscoverySource, k *seenKind) bool {
	for _, m := range record.MarksOfSource(s, d.key.Namespace, namespace) {
		if slices.Contains(d.sought.leftOut, m) {
			continue
		}
		entries, err := d.w.Watcher.Lookup(k.Kind, string(m))
		if err != nil {
			return false
		}
		for _, e := range entries {
			if d.full {
				return true
			}
			// The record has the object's namespace, but not who wrote the mark. Without an inventory, Flux's labels on an
			// object with a controller are copies.
			rec := record.GetComponent(e.Record)
			copied := rec != nil && rec.Controller != "" && s.ArgoApplication == nil
			if rec != nil && !copied && e.Key.Namespace == namespace && e.UID != d.app.UID {
				d.found(k, e, rec)
			}
		}
	}
	return true
}

// pending reports whether a kind has not been listed since its marks were wanted, and triggers a relist.
func (d *discovered) pending(k *seenKind) bool {
	begun, listed := d.w.Watcher.Generations(k.Kind)
	if listed >= d.sought.since {
		return false
	}
	// A running list is not restarted, or none would ever complete.
	if begun > 0 && begun == listed && begun < d.sought.since && d.w.Wanted.MayRelist(k.Kind.GroupKind()) {
		d.w.Watcher.Relist(func(gk schema.GroupKind) bool { return gk == k.Kind.GroupKind() })
	}
	d.unlisted = true
	return true
}

// found adds an object.
func (d *discovered) found(k *seenKind, e kindwatch.Entry, rec *record.Component) {
	if _, known := d.uids[e.UID]; known {
		return
	}
	view := appstatus.NewComponentView(k.GVK, e.Key, nil)
	view.Found, view.Installed = rec, true
	if d.add(view) {
		d.uids[e.UID] = struct{}{}
		d.claim(k, e, rec)
	}
}

// holdKind keeps the status of the objects of a kind until they are known.
func (d *discovered) holdKind(gvk schema.GroupVersionKind) {
	d.undiscovered = true
	known := false
	unread := workload.StateProblem(kindwatch.StateSyncing, gvk)
	for _, was := range d.app.Status.Discovered {
		if was.Group == gvk.Group && was.Kind == gvk.Kind && was.Name != "" {
			known = true
			d.hold(was, unread)
		}
	}
	if !known {
		view := appstatus.NewComponentView(gvk, types.NamespacedName{}, unread)
		view.Syncing = true
		d.add(view)
	}
}

// held keeps all discovered entries of the status if an inventory has to be read first.
func (d *discovered) held() {
	if !d.heldAll {
		return
	}
	for _, was := range d.app.Status.Discovered {
		// Entries without a name report what could not be followed in the inventory. Without them, all would seem well
		// for a moment.
		d.hold(was, &condition.Error{Reason: appsv1alpha1.ReasonSyncing, Message: "The inventory has not been read yet."})
	}
}

func (d *discovered) hold(was appsv1alpha1.DiscoveredStatus, why *condition.Error) {
	if was.Namespace != "" && !d.visibility.Namespace(was.Namespace) {
		return // It may no longer be seen.
	}
	view := appstatus.NewComponentView(schema.GroupVersionKind{Group: was.Group, Version: was.Version, Kind: was.Kind},
		types.NamespacedName{Namespace: was.Namespace, Name: was.Name}, why)
	view.Syncing = true
	d.add(view)
}

// add adds a view, unless there is one with the same key, or there are too many.
func (d *discovered) add(v appstatus.ComponentView) bool {
	key := keyOfView(v)
	if _, known := d.at[key]; known || d.full {
		return false
	}
	if len(d.views) == appsv1alpha1.MaxDiscovered {
		d.overflow()
		return false
	}
	d.at[key] = len(d.views)
	d.views = append(d.views, v)
	return true
}

// replace replaces the view with the same key.
func (d *discovered) replace(v appstatus.ComponentView) {
	if i, known := d.at[keyOfView(v)]; known {
		d.views[i] = v
	}
}

// tooMany reports what is ignored.
func (d *discovered) tooMany(message string) {
	d.undiscovered = true
	d.add(appstatus.NewComponentView(record.ApplicationKind.GroupVersionKind, types.NamespacedName{Name: d.key.Name},
		condition.NewError(appsv1alpha1.ReasonTooManyDiscovered, message)))
}

// overflow records that there are more objects than the limit.
func (d *discovered) overflow() {
	if d.full {
		return
	}
	d.full = true
	v := appstatus.NewComponentView(record.ApplicationKind.GroupVersionKind, types.NamespacedName{Name: d.key.Name}, &condition.Error{
		Reason: appsv1alpha1.ReasonTooManyDiscovered, Message: fmt.Sprintf("It discovers more than %d objects. The others are ignored.", appsv1alpha1.MaxDiscovered),
	})
	d.at[keyOfView(v)] = len(d.views)
	d.views = append(d.views, v)
}
