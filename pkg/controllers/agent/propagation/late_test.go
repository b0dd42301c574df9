// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package propagation

import (
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/masthead-dev/masthead/internal/test/agenttest"
	"github.com/masthead-dev/masthead/pkg/crossplane"
	"github.com/masthead-dev/masthead/pkg/objects"
)

// managedSpec is a claim with a spec, of which we manage some fields.
func managedSpec(t *testing.T, spec, fields string) *unstructured.Unstructured {
	t.Helper()
	managed := ""
	if fields != "" {
		managed = `, 'managedFields': [{'manager': 'kubectl', 'operation': 'Apply', 'fieldsV1': {'f:spec': {'f:size': {}}}},
			{'manager': 'masthead-late-init', 'operation': 'Apply', 'fieldsV1': {'f:spec': ` + fields + `}}]`
	}
	return agenttest.Parse(t, `{'metadata': {'name': 'db'`+managed+`}, 'spec': `+spec+`}`)
}

func TestLateSpec(t *testing.T) {
	for name, tc := range map[string]struct {
		reason            string
		Form              crossplane.Form
		have, fields, Hub string
		notOurs           []string
		want              string
		changes           bool
		travels           string
	}{
		"NothingFilledIn": {
			reason: "What the user says is the user's.",
			have:   `{'size': 1, 'compositionRef': {'name': 'mine'}}`, Hub: `{'size': 1, 'compositionRef': {'name': 'mine'}}`,
			want: `{}`, travels: `{'size': 1, 'compositionRef': {'name': 'mine'}}`,
		},
		"FilledIn": {
			reason: "What Crossplane filled in is shown, and other fields of the hub are not.",
			have:   `{'size': 1}`, Hub: `{'size': 1, 'injected': true, 'resourceRef': {'name': 'x', 'apiVersion': 'y'}, 'compositionUpdatePolicy': 'Automatic'}`,
			want: `{'resourceRef': {'name': 'x', 'apiVersion': 'y'}, 'compositionUpdatePolicy': 'Automatic'}`, changes: true, travels: `{'size': 1}`,
		},
		"Shown": {
			reason: "What is shown is not shown again, and does not travel.",
			have:   `{'size': 1, 'resourceRef': {'name': 'x'}}`, fields: `{'f:resourceRef': {'f:name': {}}}`, Hub: `{'resourceRef': {'name': 'x'}}`,
			want: `{'resourceRef': {'name': 'x'}}`, travels: `{'size': 1}`,
		},
		"Changed": {
			reason: "What is ours follows the hub.",
			have:   `{'compositionRevisionRef': {'name': 'a'}}`, fields: `{'f:compositionRevisionRef': {'f:name': {}}}`, Hub: `{'compositionRevisionRef': {'name': 'b'}}`,
			want: `{'compositionRevisionRef': {'name': 'b'}}`, changes: true, travels: `{}`,
		},
		"Emptied": {
			reason: "What goes from the hub goes from the claim.",
			have:   `{'size': 1, 'compositionRef': {'name': 'a'}}`, fields: `{'f:compositionRef': {'f:name': {}}}`, Hub: `{'size': 1}`,
			want: `{}`, changes: true, travels: `{'size': 1}`,
		},
		"TakenOver": {
			reason: "A user who writes another value takes the field from us; it is not overridden, and travels.",
			have:   `{'compositionRef': {'name': 'mine'}}`, fields: `{'f:resourceRef': {'f:name': {}}}`, Hub: `{'compositionRef': {'name': 'c'}}`,
			want: `{}`, travels: `{'compositionRef': {'name': 'mine'}}`,
		},
		"PartlyTakenOver": {
			reason: "The part that is left to us stays as it is, and the whole travels.",
			have:   `{'compositionSelector': {'matchLabels': {'a': 'mine', 'b': '2'}}}`,
			fields: `{'f:compositionSelector': {'f:matchLabels': {'f:b': {}}}}`, Hub: `{'compositionSelector': {'matchLabels': {'a': '1', 'b': '3'}}}`,
			want: `{'compositionSelector': {'matchLabels': {'b': '2'}}}`, travels: `{'compositionSelector': {'matchLabels': {'a': 'mine', 'b': '2'}}}`,
		},
		"RemovedByTheUser": {
			reason: "What the user removes without saying something else is shown again.",
			have:   `{'size': 1}`, fields: `{}`, Hub: `{'compositionRef': {'name': 'c'}}`,
			want: `{'compositionRef': {'name': 'c'}}`, changes: true, travels: `{'size': 1}`,
		},
		"WithoutManagedFields": {
			reason: "After a restore that dropped them, everything is the user's: nothing is overridden.",
			have:   `{'compositionRef': {'name': 'c'}}`, Hub: `{'compositionRef': {'name': 'd'}}`,
			want: `{}`, travels: `{'compositionRef': {'name': 'c'}}`,
		},
		"SharedWithTheUser": {
			reason: "The API server said that the user manages it, too.",
			have:   `{'compositionRef': {'name': 'c'}}`, fields: `{'f:compositionRef': {'f:name': {}}}`, Hub: `{'compositionRef': {'name': 'd'}}`,
			notOurs: []string{"compositionRef"}, want: `{}`, changes: true, travels: `{}`,
		},
		"CompositeOfVersionTwo": {
			Form:   crossplane.FormComposite,
			reason: "Each field of spec.crossplane is on its own.",
			have:   `{'crossplane': {'compositionRef': {'name': 'mine'}, 'resourceRefs': [{'name': 'a'}]}}`, fields: `{'f:crossplane': {'f:resourceRefs': {}}}`,
			Hub:  `{'crossplane': {'compositionRef': {'name': 'mine'}, 'compositionRevisionRef': {'name': 'r'}, 'resourceRefs': [{'name': 'a'}, {'name': 'b'}]}}`,
			want: `{'crossplane': {'compositionRevisionRef': {'name': 'r'}, 'resourceRefs': [{'name': 'a'}, {'name': 'b'}]}}`, changes: true,
			travels: `{'crossplane': {'compositionRef': {'name': 'mine'}}}`,
		},
		"NothingLeftOfVersionTwo": {
			Form:   crossplane.FormComposite,
			reason: "What is only ours leaves no empty object behind when it does not travel.",
			have:   `{'size': 1, 'crossplane': {'compositionRef': {'name': 'c'}}}`, fields: `{'f:crossplane': {'f:compositionRef': {'f:name': {}}}}`,
			Hub: `{'crossplane': {'compositionRef': {'name': 'c'}}}`, want: `{'crossplane': {'compositionRef': {'name': 'c'}}}`, travels: `{'size': 1}`,
		},
		"FieldsOfTheAuthor": {
			Form:   crossplane.FormComposite,
			reason: "Outside of spec.crossplane a composite has only fields of its author, of any name.",
			have:   `{'size': 1}`, Hub: `{'size': 1, 'compositionRef': {'name': 'c'}}`, want: `{}`, travels: `{'size': 1}`,
		},
		"NotAnObject": {
			Form:   crossplane.FormComposite,
			reason: "What is in the way of a field is the user's and stays.",
			have:   `{'crossplane': 'x'}`, Hub: `{'compositionRef': null}`, want: `{}`, travels: `{'crossplane': 'x'}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			claim, hub := managedSpec(t, tc.have, tc.fields), managedSpec(t, tc.Hub, "")
			got, changes := LateSpec(claim, hub, tc.Form, tc.notOurs...)
			if diff := cmp.Diff(managedSpec(t, tc.want, "").Object["spec"], any(got)); diff != "" || changes != tc.changes {
				t.Errorf("%s want changes %v, got %v (-want +got):\n%s", tc.reason, tc.changes, changes, diff)
			}
			travels, _ := UsersSpec(claim, tc.Form)
			if diff := cmp.Diff(managedSpec(t, tc.travels, "").Object["spec"], any(travels)); diff != "" {
				t.Errorf("%s what travels (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

// FuzzLateSpec throws at LateSpec what the owner of a workload cluster could write, managedFields included.
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
		form := crossplane.FormClaim
		if composite {
			form = crossplane.FormComposite
		}
		before := objects.Digest(have.Object)
		late, _ := LateSpec(have, want, form)
		users, _ := UsersSpec(have, form)
		if objects.Digest(have.Object) != before {
			t.Error("want what is looked at to stay as it is")
		}
		mine, _ := have.Object["spec"].(map[string]any)
		for _, path := range form.LateFields(mine, spec) {
			_, ours := ownedAt(LateOwned(have), path)
			_, there, _ := unstructured.NestedFieldNoCopy(mine, path...)
			_, applied, _ := unstructured.NestedFieldNoCopy(late, path...)
			_, travels, _ := unstructured.NestedFieldNoCopy(users, path...)
			if there && !ours && (applied || !travels) {
				t.Errorf("want %v to be the user's, and to travel", path)
			}
			unstructured.RemoveNestedField(late, path...)
		}
		delete(late, crossplane.CrossplaneField)
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
		"Whole":    {reason: "Another field manager owns all of it.", err: conflict(cause(".spec.crossplane")), want: []string{"crossplane.compositionRef"}},
		"Similar":  {reason: "Another field whose name begins alike.", err: conflict(cause(".spec.compositionRefs"))},
		"Other":    {reason: "Not a field of the spec.", err: conflict(cause(".metadata.labels.a"))},
		"UID":      {reason: "Another object of that name has no conflicting fields.", err: conflict()},
		"NotFound": {reason: "Another error.", err: errors.New("x")},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, ConflictingFields(tc.err, [][]string{{"compositionRef"}, {"crossplane", "compositionRef"}})); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

func TestAwaitsLateFields(t *testing.T) {
	created := time.Unix(1000, 0)
	hub := func(ready string) *unstructured.Unstructured {
		u := agenttest.Parse(t, `{'metadata': {'name': 'db'}, 'status': {'conditions': [{'type': 'Ready', 'status': '`+ready+`'}]}}`)
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
		"Old":       {reason: "The wait does not last until infrastructure is provisioned.", ready: "False", after: time.Minute, want: 0},
		"FutureHub": {reason: "A clock that is off does not extend the wait.", ready: "False", after: -time.Hour, want: 2 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			if got := AwaitsLateFields(hub(tc.ready), created.Add(tc.after), 2*time.Second); got != tc.want {
				t.Errorf("%s want %s, got %s", tc.reason, tc.want, got)
			}
		})
	}
}
