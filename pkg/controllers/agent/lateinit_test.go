// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// managedSpec is a claim with a spec, of which we manage some fields.
func managedSpec(t *testing.T, spec, fields string) *unstructured.Unstructured {
	t.Helper()
	managed := ""
	if fields != "" {
		managed = `, 'managedFields': [{'manager': 'kubectl', 'operation': 'Apply', 'fieldsV1': {'f:spec': {'f:size': {}}}},
			{'manager': 'masthead-late-init', 'operation': 'Apply', 'fieldsV1': {'f:spec': ` + fields + `}}]`
	}
	return parse(t, `{'metadata': {'name': 'db'`+managed+`}, 'spec': `+spec+`}`)
}

func TestLateSpec(t *testing.T) {
	for name, tc := range map[string]struct {
		reason            string
		form              form
		have, fields, hub string
		notOurs           []string
		want              string
		changes           bool
		travels           string
	}{
		"NothingFilledIn": {
			reason: "What the user says is the user's.",
			have:   `{'size': 1, 'compositionRef': {'name': 'mine'}}`, hub: `{'size': 1, 'compositionRef': {'name': 'mine'}}`,
			want: `{}`, travels: `{'size': 1, 'compositionRef': {'name': 'mine'}}`,
		},
		"FilledIn": {
			reason: "What Crossplane filled in is shown, and other fields of the hub are not.",
			have:   `{'size': 1}`, hub: `{'size': 1, 'injected': true, 'resourceRef': {'name': 'x', 'apiVersion': 'y'}, 'compositionUpdatePolicy': 'Automatic'}`,
			want: `{'resourceRef': {'name': 'x', 'apiVersion': 'y'}, 'compositionUpdatePolicy': 'Automatic'}`, changes: true, travels: `{'size': 1}`,
		},
		"Shown": {
			reason: "What is shown is not shown again, and does not travel.",
			have:   `{'size': 1, 'resourceRef': {'name': 'x'}}`, fields: `{'f:resourceRef': {'f:name': {}}}`, hub: `{'resourceRef': {'name': 'x'}}`,
			want: `{'resourceRef': {'name': 'x'}}`, travels: `{'size': 1}`,
		},
		"Changed": {
			reason: "What is ours follows the hub.",
			have:   `{'compositionRevisionRef': {'name': 'a'}}`, fields: `{'f:compositionRevisionRef': {'f:name': {}}}`, hub: `{'compositionRevisionRef': {'name': 'b'}}`,
			want: `{'compositionRevisionRef': {'name': 'b'}}`, changes: true, travels: `{}`,
		},
		"Emptied": {
			reason: "What goes from the hub goes from the claim.",
			have:   `{'size': 1, 'compositionRef': {'name': 'a'}}`, fields: `{'f:compositionRef': {'f:name': {}}}`, hub: `{'size': 1}`,
			want: `{}`, changes: true, travels: `{'size': 1}`,
		},
		"TakenOver": {
			reason: "A user who writes another value takes the field from us; it is not overridden, and travels.",
			have:   `{'compositionRef': {'name': 'mine'}}`, fields: `{'f:resourceRef': {'f:name': {}}}`, hub: `{'compositionRef': {'name': 'c'}}`,
			want: `{}`, travels: `{'compositionRef': {'name': 'mine'}}`,
		},
		"PartlyTakenOver": {
			reason: "The part that is left to us stays as it is, and the whole travels.",
			have:   `{'compositionSelector': {'matchLabels': {'a': 'mine', 'b': '2'}}}`,
			fields: `{'f:compositionSelector': {'f:matchLabels': {'f:b': {}}}}`, hub: `{'compositionSelector': {'matchLabels': {'a': '1', 'b': '3'}}}`,
			want: `{'compositionSelector': {'matchLabels': {'b': '2'}}}`, travels: `{'compositionSelector': {'matchLabels': {'a': 'mine', 'b': '2'}}}`,
		},
		"RemovedByTheUser": {
			reason: "What the user removes without saying something else is shown again.",
			have:   `{'size': 1}`, fields: `{}`, hub: `{'compositionRef': {'name': 'c'}}`,
			want: `{'compositionRef': {'name': 'c'}}`, changes: true, travels: `{'size': 1}`,
		},
		"WithoutManagedFields": {
			reason: "After a restore that dropped them, everything is the user's: nothing is overridden.",
			have:   `{'compositionRef': {'name': 'c'}}`, hub: `{'compositionRef': {'name': 'd'}}`,
			want: `{}`, travels: `{'compositionRef': {'name': 'c'}}`,
		},
		"SharedWithTheUser": {
			reason: "The API server said that the user manages it, too.",
			have:   `{'compositionRef': {'name': 'c'}}`, fields: `{'f:compositionRef': {'f:name': {}}}`, hub: `{'compositionRef': {'name': 'd'}}`,
			notOurs: []string{"compositionRef"}, want: `{}`, changes: true, travels: `{}`,
		},
		"CompositeOfVersionTwo": {
			form:   formComposite,
			reason: "Each field of spec.crossplane is on its own.",
			have:   `{'crossplane': {'compositionRef': {'name': 'mine'}, 'resourceRefs': [{'name': 'a'}]}}`, fields: `{'f:crossplane': {'f:resourceRefs': {}}}`,
			hub:  `{'crossplane': {'compositionRef': {'name': 'mine'}, 'compositionRevisionRef': {'name': 'r'}, 'resourceRefs': [{'name': 'a'}, {'name': 'b'}]}}`,
			want: `{'crossplane': {'compositionRevisionRef': {'name': 'r'}, 'resourceRefs': [{'name': 'a'}, {'name': 'b'}]}}`, changes: true,
			travels: `{'crossplane': {'compositionRef': {'name': 'mine'}}}`,
		},
		"NothingLeftOfVersionTwo": {
			form:   formComposite,
			reason: "What is only ours leaves no empty object behind when it does not travel.",
			have:   `{'size': 1, 'crossplane': {'compositionRef': {'name': 'c'}}}`, fields: `{'f:crossplane': {'f:compositionRef': {'f:name': {}}}}`,
			hub: `{'crossplane': {'compositionRef': {'name': 'c'}}}`, want: `{'crossplane': {'compositionRef': {'name': 'c'}}}`, travels: `{'size': 1}`,
		},
		"FieldsOfTheAuthor": {
			form:   formComposite,
			reason: "Outside of spec.crossplane a composite has only fields of its author, whatever they are called.",
			have:   `{'size': 1}`, hub: `{'size': 1, 'compositionRef': {'name': 'c'}}`, want: `{}`, travels: `{'size': 1}`,
		},
		"NotAnObject": {
			form:   formComposite,
			reason: "What is in the way of a field is the user's and stays.",
			have:   `{'crossplane': 'x'}`, hub: `{'compositionRef': null}`, want: `{}`, travels: `{'crossplane': 'x'}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			claim, hub := managedSpec(t, tc.have, tc.fields), managedSpec(t, tc.hub, "")
			got, changes := lateSpec(claim, hub, tc.form, tc.notOurs...)
			if diff := cmp.Diff(managedSpec(t, tc.want, "").Object["spec"], any(got)); diff != "" || changes != tc.changes {
				t.Errorf("%s want changes %v, got %v (-want +got):\n%s", tc.reason, tc.changes, changes, diff)
			}
			travels, _ := usersSpec(claim, tc.form)
			if diff := cmp.Diff(managedSpec(t, tc.travels, "").Object["spec"], any(travels)); diff != "" {
				t.Errorf("%s what travels (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

// FuzzLateSpec throws at lateSpec what the owner of a workload cluster could write, managedFields included.
func FuzzLateSpec(f *testing.F) {
	f.Add(`{"spec":{"compositionRef":{"name":"a"}},"metadata":{"managedFields":[{"manager":"masthead-late-init","operation":"Apply","fieldsV1":{"f:spec":{"f:compositionRef":{"f:name":{}}}}}]}}`, `{"compositionRef":{"name":"b"}}`, false)
	f.Add(`{"spec":{"crossplane":{"resourceRefs":[1]}},"metadata":{"managedFields":[{"manager":"masthead-late-init","operation":"Apply","fieldsV1":{"f:spec":{"f:crossplane":{"f:resourceRefs":{"k:{}":{}}}}}}]}}`, `{"crossplane":{"a":{}}}`, true)
	f.Add(`{"spec":7,"metadata":{"managedFields":{"a":1}}}`, `{"crossplane":null}`, true)
	f.Add(`{"metadata":{"managedFields":[null,{"manager":"masthead-late-init","operation":"Apply","fieldsV1":[]}]}}`, `{}`, false)
	f.Fuzz(func(t *testing.T, claim, hub string, composite bool) {
		have, want := &unstructured.Unstructured{}, &unstructured.Unstructured{Object: map[string]any{}}
		var spec map[string]any
		if json.Unmarshal([]byte(claim), &have.Object) != nil || json.Unmarshal([]byte(hub), &spec) != nil || have.Object == nil {
			return
		}
		want.Object["spec"] = spec
		form := formClaim
		if composite {
			form = formComposite
		}
		before := hashOf(have.Object)
		late, _ := lateSpec(have, want, form)
		users, _ := usersSpec(have, form)
		if hashOf(have.Object) != before {
			t.Error("want what is looked at to stay as it is")
		}
		mine, _ := have.Object["spec"].(map[string]any)
		for _, path := range form.lateFields(mine, spec) {
			_, ours := ownedAt(lateOwned(have), path)
			_, there, _ := unstructured.NestedFieldNoCopy(mine, path...)
			_, applied, _ := unstructured.NestedFieldNoCopy(late, path...)
			_, travels, _ := unstructured.NestedFieldNoCopy(users, path...)
			if there && !ours && (applied || !travels) {
				t.Errorf("want %v to be the user's, and to travel", path)
			}
			unstructured.RemoveNestedField(late, path...)
		}
		delete(late, crossplaneField)
		if len(late) > 0 {
			t.Errorf("want nothing but what Crossplane fills in, got %v", late)
		}
	})
}

func TestConflictingFields(t *testing.T) {
	conflict := func(causes ...metav1.StatusCause) error {
		return apierrors.NewApplyConflict(causes, "")
	}
	cause := func(field string) metav1.StatusCause {
		return metav1.StatusCause{Type: metav1.CauseTypeFieldManagerConflict, Field: field}
	}
	for name, tc := range map[string]struct {
		reason string
		err    error
		want   []string
	}{
		"None":     {reason: "No error is no conflict."},
		"Field":    {reason: "The field, not its member.", err: conflict(cause(".spec.compositionRef.name")), want: []string{"compositionRef"}},
		"Nested":   {reason: "Fields of spec.crossplane are apart.", err: conflict(cause(".spec.crossplane.compositionRef.name")), want: []string{"crossplane.compositionRef"}},
		"Whole":    {reason: "Somebody manages all of it.", err: conflict(cause(".spec.crossplane")), want: []string{"crossplane.compositionRef"}},
		"Similar":  {reason: "Another field whose name begins alike.", err: conflict(cause(".spec.compositionRefs"))},
		"Other":    {reason: "Not a field of the spec.", err: conflict(cause(".metadata.labels.a"))},
		"UID":      {reason: "Another object of that name has no conflicting fields.", err: conflict()},
		"NotFound": {reason: "Another error.", err: errors.New("x")},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, conflictingFields(tc.err, [][]string{{"compositionRef"}, {"crossplane", "compositionRef"}})); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

func TestAwaitsLateFields(t *testing.T) {
	created := time.Unix(1000, 0)
	hub := func(ready string) *unstructured.Unstructured {
		u := parse(t, `{'metadata': {'name': 'db'}, 'status': {'conditions': [{'type': 'Ready', 'status': '`+ready+`'}]}}`)
		u.SetCreationTimestamp(metav1.NewTime(created))
		return u
	}
	for name, tc := range map[string]struct {
		reason string
		ready  string
		after  time.Duration
		want   time.Duration
	}{
		"Ready":     {reason: "Nothing more comes.", ready: "True", want: 0},
		"Young":     {reason: "More may come.", ready: "False", after: time.Second, want: time.Second},
		"Old":       {reason: "Nobody waits for infrastructure to be provisioned.", ready: "False", after: time.Minute, want: 0},
		"FutureHub": {reason: "A clock that is off makes nobody wait longer.", ready: "False", after: -time.Hour, want: 2 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			if got := awaitsLateFields(hub(tc.ready), created.Add(tc.after), 2*time.Second); got != tc.want {
				t.Errorf("%s want %s, got %s", tc.reason, tc.want, got)
			}
		})
	}
}

// fill does what Crossplane does when it fills in fields of a claim in the hub.
func (f *fixture) fill(name string, values map[string]string) {
	f.t.Helper()
	hub := f.object(f.target, name)
	f.edit(f.hub, hub, func() {
		for field, value := range values {
			_ = unstructured.SetNestedField(hub.Object, value, "spec", field, "name")
		}
	})
}

// specIs waits until a claim has certain names in fields of its spec, in the hub or in the workload cluster.
func (f *fixture) specIs(c client.Client, namespace, name string, want map[string]string) {
	f.t.Helper()
	f.eventually("the spec of "+name+" in "+namespace, func() error {
		u, err := f.get(c, namespace, name)
		if err != nil {
			return err
		}
		for field, value := range want {
			if got, _, _ := unstructured.NestedString(u.Object, "spec", field, "name"); got != value {
				return fmt.Errorf("%s is %q and not %q", field, got, value)
			}
		}
		return nil
	})
}

func TestFieldsThatCrossplaneFillsInAreShownForOneRequest(t *testing.T) {
	f := prepareFixture(t)
	f.options = patient
	f.start()
	f.served()
	f.claim("db")
	f.pushed("db")
	f.fill("db", map[string]string{"resourceRef": "xdb-1"})
	f.fill("db", map[string]string{"compositionRef": "c"})
	f.ready("db", "db.example.org")
	f.synced("db", ReasonSynced)
	f.specIs(f.workload, f.namespace, "db", map[string]string{"resourceRef": "xdb-1", "compositionRef": "c"})
	f.settled()
	got := append(f.hubRequests.about(f.group, "/mysqlinstances/db"), f.workloadAsked.about(f.group, "/mysqlinstances/db")...)
	if len(got) != 4 {
		t.Errorf("want 4 requests: the finalizer, the apply, the fields that were filled in, the status; got %d:\n%s", len(got), strings.Join(got, "\n"))
	}

	f.stopAgent()
	f.hubRequests, f.workloadAsked = newRequests(f.number), newRequests(f.number)
	f.restart()
	f.lookedAt(1)
	f.settled()
	if got := append(f.hubRequests.writes(), f.workloadAsked.writes()...); len(got) != 0 {
		t.Errorf("want no write after a restart: what was filled in is not taken for the user's, got:\n%s", strings.Join(got, "\n"))
	}
}

func TestFieldsThatCrossplaneFillsInAreNeverFoughtOver(t *testing.T) {
	f := newFixture(t)
	claim := f.claim("db")
	f.pushed("db")
	f.ready("db", "a")
	f.fill("db", map[string]string{"resourceRef": "xdb-1", "compositionRef": "c"})
	f.specIs(f.workload, f.namespace, "db", map[string]string{"resourceRef": "xdb-1", "compositionRef": "c"})
	hash := func() string {
		u, err := f.get(f.hub, f.target, "db")
		if err != nil {
			t.Fatal(err)
		}
		return u.GetAnnotations()[AppliedHashAnnotation]
	}
	before := hash()

	f.fill("db", map[string]string{"compositionRef": "d"})
	f.specIs(f.workload, f.namespace, "db", map[string]string{"compositionRef": "d"})
	f.settled()
	if after := hash(); after != before {
		t.Error("want what Crossplane filled in never to be pushed as the user's")
	}

	// The user writes one of the fields: it is his, and travels; the hub's object follows, and later changes do not come back.
	f.edit(f.workload, claim, func() {
		_ = unstructured.SetNestedField(claim.Object, "mine", "spec", "compositionRef", "name")
	})
	f.specIs(f.hub, f.target, "db", map[string]string{"compositionRef": "mine"})
	f.fill("db", map[string]string{"compositionRef": "enforced"})
	f.settled()
	f.specIs(f.workload, f.namespace, "db", map[string]string{"compositionRef": "mine", "resourceRef": "xdb-1"})
	f.specIs(f.hub, f.target, "db", map[string]string{"compositionRef": "enforced"})

	// He removes it: what the hub has is shown again.
	f.edit(f.workload, claim, func() { unstructured.RemoveNestedField(claim.Object, "spec", "compositionRef") })
	f.fill("db", map[string]string{"compositionRef": "e"})
	f.specIs(f.workload, f.namespace, "db", map[string]string{"compositionRef": "e"})

	// A tool of his applies the same value. Nothing tells that from ours, until it would have to change.
	same := f.object(f.namespace, "db")
	_ = unstructured.SetNestedField(same.Object, "e", "spec", "compositionRef", "name")
	if err := f.workload.Apply(f.ctx, client.ApplyConfigurationFromUnstructured(same), client.FieldOwner("gitops")); err != nil {
		t.Fatal(err)
	}
	f.settled()
	f.fill("db", map[string]string{"compositionRef": "g"})
	f.specIs(f.hub, f.target, "db", map[string]string{"compositionRef": "e"})
	f.specIs(f.workload, f.namespace, "db", map[string]string{"compositionRef": "e"})
	same = f.object(f.namespace, "db")
	_ = unstructured.SetNestedField(same.Object, "e2", "spec", "compositionRef", "name")
	if err := f.workload.Apply(f.ctx, client.ApplyConfigurationFromUnstructured(same), client.FieldOwner("gitops")); err != nil {
		t.Errorf("want the user's tool never to be in conflict with what was his, got %v", err)
	}
	f.specIs(f.hub, f.target, "db", map[string]string{"compositionRef": "e2"})
}

func TestLateFieldsOfAClaimThatIsGoneMakeNoClaim(t *testing.T) {
	f := newFixture(t)
	f.served()
	w, ok := f.agent.workloads.get(f.cluster)
	if !ok {
		t.Fatal("the cluster is not engaged")
	}
	gone := f.object(f.namespace, "gone")
	gone.SetUID("0d8d7c1c-5b8f-4a0e-8f57-3b1f0f6c7a11")
	s := &scope{Request: Request{ClusterName: f.cluster}, workload: w, claim: gone}
	s.Kind.GroupVersionKind, s.Namespace, s.Name = f.gvk(), f.namespace, "gone"
	_, err := f.agent.requirements.applyLate(f.ctx, s, lateInitManager, recordFor(gone, f.object(f.target, "gone")), map[string]any{"compositionRef": map[string]any{"name": "c"}})
	if !apierrors.IsConflict(err) {
		t.Errorf("want it to be refused, got %v", err)
	}
	if _, err := f.get(f.workload, f.namespace, "gone"); !apierrors.IsNotFound(err) {
		t.Errorf("want no claim, got %v", err)
	}
}

// Who finds out that a field is the user's has to have it pushed: the watch does not have a claim looked at because of what
// Masthead wrote itself, if its answer was here first.
func TestFieldThatTurnsOutToBeTheUsersIsPushedAtOnce(t *testing.T) {
	f := newFixture(t)
	f.served()
	f.claim("db")
	f.pushed("db")
	f.fill("db", map[string]string{"compositionRef": "e"})
	f.specIs(f.workload, f.namespace, "db", map[string]string{"compositionRef": "e"})
	f.settled()
	w, ok := f.agent.workloads.get(f.cluster)
	if !ok {
		t.Fatal("the cluster is not engaged")
	}
	kind, _ := w.kindOf(f.crd().Name)
	hub, err := f.get(f.hub, f.target, "db")
	if err != nil {
		t.Fatal(err)
	}
	f.stopAgent()

	same := f.object(f.namespace, "db")
	_ = unstructured.SetNestedField(same.Object, "e", "spec", "compositionRef", "name")
	if err := f.workload.Apply(f.ctx, client.ApplyConfigurationFromUnstructured(same), client.FieldOwner("gitops")); err != nil {
		t.Fatal(err)
	}
	claim, err := f.get(f.workload, f.namespace, "db")
	if err != nil {
		t.Fatal(err)
	}
	_ = unstructured.SetNestedField(hub.Object, "g", "spec", "compositionRef", "name")
	s := &scope{Request: w.request(kind, claim), workload: w, claim: claim}
	p, again, err := f.agent.requirements.lateInitialise(f.ctx, s, hub)
	if p != nil || err != nil || again == 0 {
		t.Errorf("want the claim to be looked at again, got %v, %v, %s", p, err, again)
	}
	if spec, _ := usersSpec(s.claim, s.form); spec["compositionRef"] == nil {
		t.Errorf("want the field to be the user's now, got %v", spec)
	}
}
