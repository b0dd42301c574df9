// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package definition

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appsv1alpha1 "github.com/masthead-dev/masthead/apis/apps/v1alpha1"
	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/internal/test/controllertest"
	"github.com/masthead-dev/masthead/internal/test/testenv"
	"github.com/masthead-dev/masthead/pkg/condition"
	"github.com/masthead-dev/masthead/pkg/hubidentity"
	"github.com/masthead-dev/masthead/pkg/install"
)

// countingDefinitions counts requests to an API server.
type countingDefinitions struct {
	install.Objects
	reads, writes int
}

func (c *countingDefinitions) Get(
	ctx context.Context, name string, o metav1.GetOptions, sub ...string,
) (*unstructured.Unstructured, error) {
	c.reads++
	return c.Objects.Get(ctx, name, o, sub...)
}

func (c *countingDefinitions) Create(
	ctx context.Context, obj *unstructured.Unstructured, o metav1.CreateOptions, sub ...string,
) (*unstructured.Unstructured, error) {
	c.writes++
	return c.Objects.Create(ctx, obj, o, sub...)
}

func (c *countingDefinitions) Update(
	ctx context.Context, obj *unstructured.Unstructured, o metav1.UpdateOptions, sub ...string,
) (*unstructured.Unstructured, error) {
	c.writes++
	return c.Objects.Update(ctx, obj, o, sub...)
}

// definitionFixture is a separate workload cluster: the definition has one name, so tests cannot share a cluster.
type definitionFixture struct {
	controllertest.Case

	admin  client.Client
	crds   dynamic.ResourceInterface
	apps   dynamic.ResourceInterface
	counts *countingDefinitions
	keeper *Installer
}

func newDefinitionFixture(t *testing.T) *definitionFixture {
	t.Helper()
	env, err := testenv.New()
	if err != nil {
		t.Fatal(err)
	}
	cfg, err := testenv.Start(env)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = env.Stop() })
	dyn, err := dynamic.NewForConfig(cfg)
	if err != nil {
		t.Fatal(err)
	}
	f := &definitionFixture{Case: controllertest.Case{T: t, Ctx: t.Context(), Patience: time.Minute}, crds: dyn.Resource(Resource)}
	f.apps = dyn.Resource(appsv1alpha1.GroupVersion.WithResource("applications")).Namespace(metav1.NamespaceDefault)
	f.admin = controllertest.NewClient(t, cfg, scheme.Scheme)
	f.counts = &countingDefinitions{Objects: f.crds}
	f.keeper = newKeeper(t)
	return f
}

func newKeeper(t *testing.T) *Installer {
	t.Helper()
	k, err := NewKeeper(time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// now is the definition that the cluster has, or nil.
func (f *definitionFixture) now() *unstructured.Unstructured {
	f.T.Helper()
	crd, err := f.crds.Get(f.T.Context(), Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		f.T.Fatal(err)
	}
	return crd
}

// ensure calls a keeper with what the watch would report now. It returns what the keeper reports, and when it checks
// again.
func (f *definitionFixture) ensure(k *Installer) (State, *condition.Error, time.Duration) {
	f.T.Helper()
	var seen *Seen
	if crd := f.now(); crd != nil {
		s := SeenIn(crd)
		seen = &s
	}
	state, err := k.Ensure(f.T.Context(), "w1", f.counts, seen)
	result, failed := condition.Result(err)
	if failed != nil {
		f.T.Fatal(failed)
	}
	reported, _ := errors.AsType[*condition.Error](err)
	return state, reported, result.RequeueAfter
}

// writes expects the keeper to write the definition. The API server also writes it, when it establishes it, so that the
// keeper can need more than one attempt.
func (f *definitionFixture) writes(k *Installer, what string) {
	f.T.Helper()
	f.Within("the keeper writes it", func() error {
		state, reported, _ := f.ensure(k)
		if state.Served && reported == nil && state.Wrote == what {
			return nil
		}
		return fmt.Errorf("want %s and nothing reported, got %+v", what, state)
	})
}

// settled expects the keeper to find everything as wanted, and to send no request.
func (f *definitionFixture) settled(k *Installer) {
	f.T.Helper()
	before := *f.counts
	if state, reported, again := f.ensure(k); !state.Served || reported != nil || state.Wrote != "" || again != 0 {
		f.T.Errorf("want it settled, got %+v, %v, again after %s", state, reported, again)
	}
	if f.counts.reads != before.reads || f.counts.writes != before.writes {
		f.T.Errorf("a definition that is right costs requests: %d reads, %d writes", f.counts.reads-before.reads, f.counts.writes-before.writes)
	}
}

func (f *definitionFixture) edit(change func(crd *unstructured.Unstructured)) {
	f.T.Helper()
	f.Within("the definition can be edited", func() error {
		crd := f.now()
		change(crd)
		_, err := f.crds.Update(f.T.Context(), crd, metav1.UpdateOptions{})
		return err
	})
}

func (f *definitionFixture) remove() {
	f.T.Helper()
	if err := f.crds.Delete(f.T.Context(), Name, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
		f.T.Fatal(err)
	}
	f.Within("the definition is gone", func() error {
		if f.now() != nil {
			return errors.Join(testenv.ReleaseDefinitions(f.Ctx, f.admin), errors.New("it is there"))
		}
		return nil
	})
}

func (f *definitionFixture) served() {
	f.T.Helper()
	f.Within("Applications are served", func() error {
		_, err := f.apps.List(f.T.Context(), metav1.ListOptions{})
		return err
	})
}

// annotate sets an annotation of an object, or removes it.
func annotate(obj *unstructured.Unstructured, key, value string) {
	annotations := map[string]string{}
	maps.Copy(annotations, obj.GetAnnotations())
	annotations[key] = value
	if value == "" {
		delete(annotations, key)
	}
	obj.SetAnnotations(annotations)
}

// ofRevision is a keeper of another manager, whose definition has another revision and is distinguished by a short
// name.
func ofRevision(t *testing.T, revision, shortName string) *Installer {
	t.Helper()
	k := newKeeper(t)
	object := k.want.object.DeepCopy()
	annotate(object, appsv1alpha1.DefinitionRevisionAnnotation, revision)
	if err := unstructured.SetNestedStringSlice(object.Object, []string{shortName}, "spec", "names", "shortNames"); err != nil {
		t.Fatal(err)
	}
	var err error
	if k.want, err = newWantedDefinition(object); err != nil {
		t.Fatal(err)
	}
	return k
}

func shortName(crd *unstructured.Unstructured) string {
	names, _, _ := unstructured.NestedStringSlice(crd.Object, "spec", "names", "shortNames")
	return strings.Join(names, ",")
}

// TestDefinition has its own workload cluster. Each part begins without a definition.
//
//nolint:tparallel // Its parts are one after another in that cluster.
func TestDefinition(t *testing.T) {
	t.Parallel()
	f := newDefinitionFixture(t)
	for name, test := range map[string]func(*definitionFixture){
		"Life": testDefinitionLife, "NotOurs": testDefinitionThatIsNotOurs,
		"AnotherHub": testDefinitionOfAnotherHub, "HandedOver": testDefinitionThatIsHandedOver,
		"StoredVersions": testDefinitionKeepsTheVersionsInWhichObjectsAreStored, "StaleWatch": testDefinitionStaleWatch,
	} {
		t.Run(name, func(t *testing.T) {
			part := *f
			part.T = t
			part.remove()
			test(&part)
		})
	}
}

// testDefinitionLife covers the life of a definition. Each step builds on the one before.
func testDefinitionLife(f *definitionFixture) {
	t := f.T
	t.Helper()

	t.Log("it is created")
	f.writes(f.keeper, "create")
	f.served()
	f.settled(f.keeper)
	if got := f.now().GetLabels()[fleetv1alpha1.ManagedByLabel]; got != install.LabelValue {
		t.Errorf("want it labelled as Masthead's, got %q", got)
	}
	f.settled(newKeeper(t)) // after a restart

	t.Log("it works")
	app := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": appsv1alpha1.GroupVersion.String(), "kind": "Application", "metadata": map[string]any{"name": "kept"},
		"spec": map[string]any{"selector": map[string]any{}},
	}}
	if _, err := f.apps.Create(t.Context(), app, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}

	t.Log("drift is put back, also drift of the metadata")
	for name, change := range map[string]func(*unstructured.Unstructured){
		"Names": func(crd *unstructured.Unstructured) {
			_ = unstructured.SetNestedStringSlice(crd.Object, []string{"hijacked"}, "spec", "names", "shortNames")
		},
		"RevisionGone":    func(crd *unstructured.Unstructured) { annotate(crd, appsv1alpha1.DefinitionRevisionAnnotation, "") },
		"RevisionGarbled": func(crd *unstructured.Unstructured) { annotate(crd, appsv1alpha1.DefinitionRevisionAnnotation, "-1\n") },
		"RecordGone":      func(crd *unstructured.Unstructured) { annotate(crd, appsv1alpha1.DefinitionWrittenAnnotation, "") },
	} {
		f.edit(change)
		f.writes(f.keeper, "update")
		f.settled(f.keeper)
		if got := shortName(f.now()); got != "app" {
			t.Errorf("%s: want the short name app, got %q", name, got)
		}
	}

	t.Log("what others add to its metadata stays")
	f.edit(func(crd *unstructured.Unstructured) {
		annotate(crd, "inventory.acmeco.org/seen", "yes")
		crd.SetLabels(map[string]string{fleetv1alpha1.ManagedByLabel: install.LabelValue, "team": "shop"})
	})
	f.settled(f.keeper)
	f.edit(func(crd *unstructured.Unstructured) { annotate(crd, appsv1alpha1.DefinitionRevisionAnnotation, "") })
	f.writes(f.keeper, "update")
	if crd := f.now(); crd.GetLabels()["team"] != "shop" || crd.GetAnnotations()["inventory.acmeco.org/seen"] != "yes" {
		t.Errorf("labels and annotations of others are gone: %v, %v", crd.GetLabels(), crd.GetAnnotations())
	}

	t.Log("a newer manager upgrades it, and an older one leaves it alone and works with it")
	newer := ofRevision(t, "7", "newer")
	f.writes(newer, "update")
	f.settled(newer)
	before := *f.counts
	state, notice, _ := f.ensure(f.keeper)
	if !state.Served || state.Wrote != "" || notice == nil || notice.Reason != fleetv1alpha1.ReasonDefinitionNewer {
		t.Errorf("want it used as it is, got %+v, %v", state, notice)
	}
	if f.counts.writes != before.writes || f.counts.reads != before.reads {
		t.Error("a definition of a newer manager costs requests")
	}
	if got := shortName(f.now()); got != "newer" {
		t.Errorf("the definition was downgraded: short name %q", got)
	}
	if _, err := f.apps.Get(t.Context(), "kept", metav1.GetOptions{}); err != nil {
		t.Errorf("an Application did not survive the upgrades: %v", err)
	}
}

// testDefinitionOfAnotherHub leaves another Masthead's definition alone, even if it is older, and takes it over from a
// predecessor.
func testDefinitionOfAnotherHub(f *definitionFixture) {
	t := f.T
	t.Helper()
	theirs := f.keeper.ForOwner(hubidentity.Owner{ID: "hub-b"})
	newer := ofRevision(t, "7", "newer")
	f.writes(theirs, "create")
	f.settled(theirs)

	before := *f.counts
	state, problem, _ := f.ensure(newer.ForOwner(hubidentity.Owner{ID: "hub-a"}))
	if state.Served || state.Wrote != "" || problem == nil || problem.Reason != fleetv1alpha1.ReasonDefinitionForeign {
		t.Fatalf("want it left alone, got %+v, %v", state, problem)
	}
	if !strings.Contains(problem.Message, "hub-b") {
		t.Errorf("want the other hub named, got %q", problem.Message)
	}
	if f.counts.writes != before.writes || shortName(f.now()) != "app" {
		t.Error("the definition of another hub was written")
	}

	heir := newer.ForOwner(hubidentity.Owner{ID: "hub-a", Predecessors: []hubidentity.Identity{"hub-b"}})
	f.writes(heir, "update")
	f.settled(heir)
	if got := f.now().GetLabels()[fleetv1alpha1.HubLabel]; got != "hub-a" {
		t.Errorf("want it to name its new hub, got %q", got)
	}
}

// testDefinitionThatIsNotOurs leaves others' definitions alone.
func testDefinitionThatIsNotOurs(f *definitionFixture) {
	t := f.T
	t.Helper()
	controller := true
	for name, change := range map[string]func(*unstructured.Unstructured){
		"NoLabel": func(crd *unstructured.Unstructured) { crd.SetLabels(nil) },
		"AnothersLabel": func(crd *unstructured.Unstructured) {
			crd.SetLabels(map[string]string{fleetv1alpha1.ManagedByLabel: "helm"})
		},
		"Controlled": func(crd *unstructured.Unstructured) {
			crd.SetLabels(map[string]string{fleetv1alpha1.ManagedByLabel: install.LabelValue})
			crd.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "v1", Kind: "Package", Name: "apps", UID: "1", Controller: &controller}})
		},
	} {
		t.Run(name, func(t *testing.T) {
			theirs := f.keeper.want.over(nil, 1)
			annotate(theirs, appsv1alpha1.DefinitionRevisionAnnotation, "0")
			change(theirs)
			if _, err := f.crds.Create(t.Context(), theirs, metav1.CreateOptions{}); err != nil {
				t.Fatal(err)
			}
			defer f.remove()
			before := *f.counts
			state, problem, again := f.ensure(f.keeper)
			if state.Served || state.Wrote != "" || again == 0 || problem == nil || problem.Reason != fleetv1alpha1.ReasonDefinitionForeign {
				t.Errorf("want it left alone and looked at again later, got %+v, %v, again after %s", state, problem, again)
			}
			if f.counts.writes != before.writes {
				t.Error("it was written")
			}
		})
	}
}

// testDefinitionThatIsHandedOver covers how a cluster's administrator hands a definition they installed over to
// Masthead.
func testDefinitionThatIsHandedOver(f *definitionFixture) {
	t := f.T
	t.Helper()
	theirs := f.keeper.want.object.DeepCopy() // as in config/crd/workload
	if _, err := f.crds.Create(t.Context(), theirs, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if state, _, _ := f.ensure(f.keeper); state.Served {
		t.Errorf("want it left alone, got %+v", state)
	}
	f.edit(func(crd *unstructured.Unstructured) {
		crd.SetLabels(map[string]string{fleetv1alpha1.ManagedByLabel: install.LabelValue})
	})
	f.writes(f.keeper, "update")
	f.settled(f.keeper)
}

// testDefinitionKeepsTheVersionsInWhichObjectsAreStored upgrades a definition that stored its objects in another
// version. An API server refuses to remove that version.
func testDefinitionKeepsTheVersionsInWhichObjectsAreStored(f *definitionFixture) {
	t := f.T
	t.Helper()
	old := f.keeper.want.over(nil, 1)
	annotate(old, appsv1alpha1.DefinitionRevisionAnnotation, "0")
	old.Object["spec"] = map[string]any{
		"group": "apps.masthead.dev", "scope": "Namespaced",
		"names": map[string]any{"kind": "Application", "plural": "applications"},
		"versions": []any{map[string]any{
			"name": "v1alpha0", "served": true, "storage": true,
			"schema": map[string]any{"openAPIV3Schema": map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true}},
		}},
	}
	if _, err := f.crds.Create(t.Context(), old, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	f.Within("the old version is established", func() error {
		if stored, _, _ := unstructured.NestedStringSlice(f.now().Object, "status", "storedVersions"); len(stored) == 0 {
			return errors.New("nothing is stored yet")
		}
		return nil
	})
	f.writes(f.keeper, "update")
	f.served()
	f.settled(f.keeper)
	versions, _, _ := unstructured.NestedSlice(f.now().Object, "spec", "versions")
	var got []string
	for _, v := range versions {
		version, _ := v.(map[string]any)
		got = append(got, fmt.Sprintf("%v storage=%v", version["name"], version["storage"]))
	}
	if want := "v1alpha1 storage=true; v1alpha0 storage=false"; strings.Join(got, "; ") != want {
		t.Errorf("want %q, got %q", want, got)
	}
}

// testDefinitionStaleWatch covers a watch that is behind.
func testDefinitionStaleWatch(f *definitionFixture) {
	t := f.T
	t.Helper()
	f.writes(f.keeper, "create")
	stale := SeenIn(f.now())

	t.Log("the watch has not reported the creation")
	state, err := f.keeper.Ensure(t.Context(), "w1", f.counts, nil)
	if result, failed := condition.Result(err); failed != nil || state.Served || result.RequeueAfter == 0 {
		t.Errorf("want it looked at again, got %+v, %v", state, err)
	}

	t.Log("the watch reports a drift that was put back already")
	stale.generation, stale.written = 99, install.Record{Hash: "old", Generation: 98}
	before := f.counts.writes
	state, err = f.keeper.Ensure(t.Context(), "w1", f.counts, &stale)
	if err != nil || !state.Served || state.Wrote != "" || f.counts.writes != before {
		t.Errorf("want nothing written, got %+v, %v", state, err)
	}

	t.Log("the watch has not reported the deletion")
	f.remove()
	state, err = f.keeper.Ensure(t.Context(), "w1", f.counts, &stale)
	if err != nil || !state.Served || state.Wrote != "create" {
		t.Errorf("want it created again, got %+v, %v", state, err)
	}
}

// refusingDefinitions answers every write with an error.
type refusingDefinitions struct {
	err  error
	have *unstructured.Unstructured
}

func (r refusingDefinitions) Create(
	context.Context, *unstructured.Unstructured, metav1.CreateOptions, ...string,
) (*unstructured.Unstructured, error) {
	return nil, r.err
}

func TestDefinitionRefused(t *testing.T) {
	crds := schema.GroupResource{Group: "apiextensions.k8s.io", Resource: "customresourcedefinitions"}
	cases := map[string]struct {
		reason     string
		err        error
		wantReason string
		wantAgain  bool
		wantErr    bool
	}{
		"Forbidden": {
			reason: "A right is missing: it is reported to users, and retried slowly.",
			err:    apierrors.NewForbidden(crds, Name, errors.New("no\x1b[2J")), wantReason: fleetv1alpha1.ReasonDefinitionForbidden, wantAgain: true,
		},
		"Invalid": {
			reason: "The API server is too old, say.", err: apierrors.NewInvalid(schema.GroupKind{}, Name, nil),
			wantReason: fleetv1alpha1.ReasonDefinitionRejected, wantAgain: true,
		},
		"TooLarge": {
			reason: "The API server limits requests.", err: apierrors.NewRequestEntityTooLargeError("limit"),
			wantReason: fleetv1alpha1.ReasonDefinitionRejected, wantAgain: true,
		},
		"Conflict": {
			reason: "Another client was faster: no problem, and no error.", err: apierrors.NewConflict(crds, Name, errors.New("x")), wantAgain: true,
		},
		"Passing": {reason: "A server that has a bad moment is tried again with back-off.", err: apierrors.NewInternalError(errors.New("x")), wantErr: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			state, err := newKeeper(t).Ensure(t.Context(), "w1", refusingDefinitions{err: tc.err}, nil)
			result, failed := condition.Result(err)
			if (failed != nil) != tc.wantErr {
				t.Fatalf("%s\nwant an error: %v, got %v", tc.reason, tc.wantErr, err)
			}
			reason := ""
			if problem, ok := errors.AsType[*condition.Error](err); ok {
				reason = problem.Reason
				if strings.ContainsRune(problem.Message, 0x1b) {
					t.Errorf("the message moves the cursor: %q", problem.Message)
				}
			}
			if state.Served || state.Wrote != "" || reason != tc.wantReason || (result.RequeueAfter > 0) != tc.wantAgain {
				t.Errorf("%s\ngot %+v with reason %q", tc.reason, state, reason)
			}
		})
	}
}

// Get returns the definition that the cluster has, and Update refuses.
func (r refusingDefinitions) Get(context.Context, string, metav1.GetOptions, ...string) (*unstructured.Unstructured, error) {
	return r.have, nil
}

func (r refusingDefinitions) Update(
	context.Context, *unstructured.Unstructured, metav1.UpdateOptions, ...string,
) (*unstructured.Unstructured, error) {
	return nil, r.err
}

func TestAnUpgradeThatIsRefused(t *testing.T) {
	crds := schema.GroupResource{Group: "apiextensions.k8s.io", Resource: "customresourcedefinitions"}
	for name, tc := range map[string]struct {
		reason     string
		err        error
		generation int64
		served     bool
		want       string
	}{
		"Forbidden": {
			reason: "A right that is missing does not take from users what they have.", generation: 1, served: true,
			err: apierrors.NewForbidden(crds, Name, errors.New("no")), want: fleetv1alpha1.ReasonDefinitionForbidden,
		},
		"Invalid": {
			reason: "Nor does an API server that is too old for what is new.", generation: 1, served: true,
			err: apierrors.NewInvalid(schema.GroupKind{}, Name, nil), want: fleetv1alpha1.ReasonDefinitionRejected,
		},
		"Edited": {
			reason: "Whether an edited definition works is unknown.", generation: 2,
			err: apierrors.NewForbidden(crds, Name, errors.New("no")), want: fleetv1alpha1.ReasonDefinitionForbidden,
		},
	} {
		t.Run(name, func(t *testing.T) {
			k := newKeeper(t)
			have := k.want.over(nil, 1)
			have.SetGeneration(tc.generation)
			k.want = &wantedDefinition{object: k.want.object, revision: k.want.revision + 1, hash: "another"}
			seen := SeenIn(have)
			state, err := k.Ensure(t.Context(), "w1", refusingDefinitions{err: tc.err, have: have}, &seen)
			reported, ok := errors.AsType[*condition.Error](err)
			if state.Served != tc.served || !ok || reported.Reason != tc.want || reported.RetryAfter == 0 {
				t.Errorf("%s Got %+v, %v", tc.reason, state, err)
			}
		})
	}
}

func TestWantedDefinition(t *testing.T) {
	want, err := embeddedDefinition()
	if err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(*unstructured.Unstructured){
		"NoRevision":      func(u *unstructured.Unstructured) { annotate(u, appsv1alpha1.DefinitionRevisionAnnotation, "") },
		"RevisionZero":    func(u *unstructured.Unstructured) { annotate(u, appsv1alpha1.DefinitionRevisionAnnotation, "0") },
		"AnotherObject":   func(u *unstructured.Unstructured) { u.SetName("others.apps.masthead.dev") },
		"RevisionGarbled": func(u *unstructured.Unstructured) { annotate(u, appsv1alpha1.DefinitionRevisionAnnotation, "x") },
	} {
		object := want.object.DeepCopy()
		change(object)
		if _, err := newWantedDefinition(object); err == nil {
			t.Errorf("%s: want an error", name)
		}
	}
	seen := SeenIn(want.over(nil, 1))
	seen.generation = 1
	if !want.isIn(seen) {
		t.Error("what is written is what is wanted")
	}
	if seen.revision = want.revision - 1; want.isIn(seen) {
		t.Error("another revision is not what is wanted")
	}
}
