// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package application

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	appsv1alpha1 "github.com/masthead-dev/masthead/apis/apps/v1alpha1"
	"github.com/masthead-dev/masthead/internal/test/applicationtest"
	"github.com/masthead-dev/masthead/pkg/condition"
	"github.com/masthead-dev/masthead/pkg/controllers/application/record"
	"github.com/masthead-dev/masthead/pkg/controllers/application/workload"
	"github.com/masthead-dev/masthead/pkg/kindwatch"
)

// selecting is an Application with the UID "app" that selects the label app=shop.
func selecting(change ...func(*appsv1alpha1.Application)) *appsv1alpha1.Application {
	app := &appsv1alpha1.Application{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "shop", UID: "app"},
		Spec: appsv1alpha1.ApplicationSpec{
			Selector:   appsv1alpha1.LabelSelector{MatchLabels: map[string]appsv1alpha1.LabelValue{"app": "shop"}},
			Components: applicationtest.Components(applicationtest.ConfigMaps, "settings"),
		},
	}
	for _, c := range change {
		c(app)
	}
	return app
}

// seen is an object that belongs to the Application, and is not owned by it.
func seen(name string, change ...func(*object)) object {
	o := object{
		kind: applicationtest.ConfigMapKind,
		entry: kindwatch.Entry{
			Key: types.NamespacedName{Namespace: "ns", Name: name}, UID: types.UID("uid-" + name), ResourceVersion: "1",
		},
		Component: &record.Component{
			Application: record.ApplicationKey{Namespace: "ns", Name: "shop"}, Labels: record.NewLabelSet(map[string]string{"app": "shop"}),
		},
	}
	for _, c := range change {
		c(&o)
	}
	return o
}

func ownedByShop(o *object) { o.Owners, o.References = []record.Owner{{UID: "app"}}, 1 }
func controlledByShop(o *object) {
	o.Owners, o.References, o.Controller = []record.Owner{{UID: "app"}}, 1, "app"
}
func controlledByAJob(o *object) { o.References, o.Controller = o.References+1, "job" }
func otherLabels(o *object)      { o.Labels = record.NewLabelSet(map[string]string{"app": "bakery"}) }
func otherAnnotation(o *object) {
	o.Application = record.ApplicationKey{Namespace: "ns", Name: "bakery"}
}
func beingDeleted(o *object) { o.Deleting = true }

func TestSelectingComponents(t *testing.T) {
	for _, tc := range []struct {
		name, reason           string
		object                 object
		leaving, patched       bool
		orphaning              bool
		adopt, release, leaves bool
		selected               int32
	}{
		{name: "new", reason: "It belongs to the Application, and has no owner reference yet.", object: seen("a"), adopt: true, selected: 1},
		{name: "owned", reason: "There is nothing to do.", object: seen("a", ownedByShop), selected: 1},
		{name: "labels", reason: "The selector does not match.", object: seen("a", otherLabels)},
		{name: "annotation", reason: "It is another's.", object: seen("a", otherAnnotation)},
		{name: "labels changed", reason: "It was ours.", object: seen("a", otherLabels, ownedByShop), release: true},
		{name: "annotation changed", reason: "It was ours.", object: seen("a", otherAnnotation, ownedByShop), release: true},
		{
			name: "controlled", reason: "Masthead makes no Application the controller of a component: the reference is not ours to take.",
			object: seen("a", otherLabels, controlledByShop),
		},
		{name: "controlled and selected", reason: "One reference is enough.", object: seen("a", controlledByShop), selected: 1},
		{
			name: "controlled by another", reason: "It is deleted with its controller, and must not outlive it.",
			object: seen("a", controlledByAJob), selected: 1,
		},
		{
			name: "controlled by another and owned", reason: "An earlier version owned such objects.",
			object: seen("a", ownedByShop, controlledByAJob), selected: 1, release: true,
		},
		{
			name: "controlled by another, and its kind left the spec", reason: "The reference has to go, as any other.",
			object: seen("a", ownedByShop, controlledByAJob), leaving: true, release: true, leaves: true,
		},
		{
			name: "orphaned", reason: "The garbage collector may not know of an object that was adopted in the last moment.",
			object: seen("a", ownedByShop), orphaning: true, selected: 1, release: true,
		},
		{name: "orphaned and not owned", reason: "The Application is on its way out.", object: seen("a"), orphaning: true, selected: 1},
		{name: "being deleted", reason: "It is on its way out.", object: seen("a", beingDeleted), selected: 1},
		{name: "being deleted and not ours", reason: "It is on its way out.", object: seen("a", beingDeleted, otherLabels, ownedByShop)},
		{
			name: "another UID", reason: "An Application of the same name that was there before owned it; that is not our reference.",
			object: seen("a", otherLabels, func(o *object) { o.Owners = []record.Owner{{UID: "old"}} }),
		},
		{
			name: "another namespace", reason: "An Application reaches only its own.",
			object: seen("a", func(o *object) { o.entry.Key.Namespace = "elsewhere" }),
		},
		{
			name: "itself", reason: "An Application that owned itself could not be deleted in the foreground.",
			object: seen("a", func(o *object) { o.entry.UID = "app" }),
		},
		{name: "patched", reason: "The watch shows what was before the write.", object: seen("a"), patched: true, selected: 1},
		{
			name: "kind left the spec", reason: "It belongs no more, even if its labels match.",
			object: seen("a", ownedByShop), leaving: true, release: true, leaves: true,
		},
		{
			name: "kind left the spec, and the reference was removed", reason: "The status waits until that is seen.",
			object: seen("a", ownedByShop), leaving: true, patched: true, leaves: true,
		},
		{name: "kind left the spec, not owned", reason: "There is nothing to do.", object: seen("a"), leaving: true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s, err := newSelector(selecting())
			if err != nil {
				t.Fatal(err)
			}
			s.orphaning = tc.orphaning
			kind := seenKind{NamedKind: workload.NamedKind{GVK: applicationtest.ConfigMapKind.GroupVersionKind, Kind: applicationtest.ConfigMapKind, Leaving: tc.leaving}, objects: []object{tc.object}}
			got := s.sort([]seenKind{kind}, func(object) bool { return tc.patched })
			if len(got.adopt) == 1 != tc.adopt || len(got.release) == 1 != tc.release || len(got.leaving) == 1 != tc.leaves || got.selected != tc.selected {
				t.Errorf("%s Got adopt %d, release %d, leaving %d, selected %d", tc.reason, len(got.adopt), len(got.release), len(got.leaving), got.selected)
			}
		})
	}
}

// An object seen in two versions of its kind is counted and owned once.
func TestSelectingComponentsOfTwoVersions(t *testing.T) {
	s, err := newSelector(selecting())
	if err != nil {
		t.Fatal(err)
	}
	other := applicationtest.ConfigMapKind
	other.Version = "v2"
	again := seen("a")
	again.kind = other
	got := s.sort([]seenKind{
		{NamedKind: workload.NamedKind{GVK: applicationtest.ConfigMapKind.GroupVersionKind}, objects: []object{seen("a"), seen("b")}},
		{NamedKind: workload.NamedKind{GVK: other.GroupVersionKind}, objects: []object{again}},
	}, func(object) bool { return false })
	if got.selected != 2 || len(got.adopt) != 2 {
		t.Errorf("want 2 objects, got %d selected, %d to adopt", got.selected, len(got.adopt))
	}
}

// A spec that changes the version of a kind releases nothing: an Application deleted at that moment would leave its
// components behind.
func TestSelectingComponentsWhoseVersionChanged(t *testing.T) {
	s, err := newSelector(selecting())
	if err != nil {
		t.Fatal(err)
	}
	former := applicationtest.ConfigMapKind
	former.Version = "v1beta1"
	same := seen("a", ownedByShop)
	same.kind = former
	got := s.sort([]seenKind{
		{NamedKind: workload.NamedKind{GVK: former.GroupVersionKind, Kind: former, Leaving: true}, objects: []object{same}},
		{NamedKind: workload.NamedKind{GVK: applicationtest.ConfigMapKind.GroupVersionKind, Kind: applicationtest.ConfigMapKind}, objects: []object{seen("a", ownedByShop)}},
	}, func(object) bool { return false })
	if got.selected != 1 || len(got.adopt)+len(got.release)+len(got.leaving) != 0 {
		t.Errorf("want it to stay owned, got %d selected, adopt %v, release %v, leaving %v", got.selected, got.adopt, got.release, got.leaving)
	}
}

// While the version in the spec cannot be observed, it is not known whether an object still belongs.
func TestSelectingComponentsWhoseNewVersionIsNotSeen(t *testing.T) {
	s, err := newSelector(selecting())
	if err != nil {
		t.Fatal(err)
	}
	former := applicationtest.ConfigMapKind
	former.Version = "v1beta1"
	same := seen("a", ownedByShop)
	same.kind = former
	got := s.sort([]seenKind{
		{NamedKind: workload.NamedKind{GVK: former.GroupVersionKind, Kind: former, Leaving: true}, objects: []object{same}},
		{NamedKind: workload.NamedKind{GVK: applicationtest.ConfigMapKind.GroupVersionKind, Unseen: &condition.Error{Reason: appsv1alpha1.ReasonSyncing, Message: "wait"}}},
	}, func(object) bool { return false })
	if len(got.release) != 0 || len(got.leaving) != 1 {
		t.Errorf("want it to be kept in mind and not to be released, got release %v, leaving %v", got.release, got.leaving)
	}
}

func TestSelectingComponentsThatAreNamed(t *testing.T) {
	unseen := &condition.Error{Reason: appsv1alpha1.ReasonKindForbidden, Message: "no"}
	refused := &condition.Error{Reason: appsv1alpha1.ReasonOwnershipForbidden, Message: "no"}
	for _, tc := range []struct {
		name, reason             string
		objects                  []object
		unseen, refused, problem *condition.Error
		found, installed         bool
	}{
		{name: "none", reason: "There is no such object."},
		{name: "another name", reason: "The KEP's components have names.", objects: []object{seen("other")}},
		{name: "there", reason: "It is installed.", objects: []object{seen("other"), seen("settings")}, found: true, installed: true},
		{
			name: "labels", reason: "Users see why it does not count.", objects: []object{seen("settings", otherLabels)}, found: true,
			problem: &condition.Error{Reason: appsv1alpha1.ReasonLabelsDoNotMatch, Message: "The selector of the Application does not match the labels of the object."},
		},
		{name: "another's", reason: "It is not shown what is another Application's.", objects: []object{seen("settings", otherAnnotation, ownedByShop)}},
		{name: "unseen", reason: "Nothing is said about what cannot be seen.", objects: []object{seen("settings")}, unseen: unseen},
		{name: "refused", reason: "It is there, and is not deleted with the Application.", objects: []object{seen("settings")}, refused: refused, found: true, installed: true, problem: refused},
		{name: "owned", reason: "What is refused does not matter to what is owned.", objects: []object{seen("settings", ownedByShop)}, refused: refused, found: true, installed: true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			app := selecting()
			s, err := newSelector(app)
			if err != nil {
				t.Fatal(err)
			}
			kind := seenKind{NamedKind: workload.NamedKind{GVK: applicationtest.ConfigMapKind.GroupVersionKind, Unseen: tc.unseen}, objects: tc.objects}
			views := s.views(app, []seenKind{kind}, func(object) *condition.Error { return tc.refused })
			if len(views) != 1 {
				t.Fatalf("want one view, got %d", len(views))
			}
			v := views[0]
			if (v.Found != nil) != tc.found || v.Installed != tc.installed || v.Unseen != tc.unseen || !equalProblems(v.Problem, tc.problem) {
				t.Errorf("%s Got %+v", tc.reason, v)
			}
		})
	}
}

func equalProblems(a, b *condition.Error) bool {
	return a == nil && b == nil || a != nil && b != nil && *a == *b
}
