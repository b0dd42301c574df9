// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/hubidentity"
)

var owner = hubidentity.Owner{ID: "us", Predecessors: []hubidentity.Identity{"before"}} //nolint:gochecknoglobals // A constant.

func TestMarks(t *testing.T) {
	yes := true
	controller := []metav1.OwnerReference{{APIVersion: "v1", Kind: "X", Name: "x", UID: "1", Controller: &yes}}
	for name, tc := range map[string]struct {
		reason        string
		labels        map[string]string
		owners        []metav1.OwnerReference
		ours, stamped bool
		other         hubidentity.Identity
	}{
		"Ours":        {reason: "It names us.", labels: owner.Stamp(nil), ours: true, stamped: true},
		"Unnamed":     {reason: "It is from before hubs had identities.", labels: map[string]string{fleetv1alpha1.ManagedByLabel: LabelValue}, ours: true},
		"Predecessor": {reason: "We took over from that hub.", labels: hubidentity.Owner{ID: "before"}.Stamp(nil), ours: true},
		"Other":       {reason: "It is another hub's.", labels: hubidentity.Owner{ID: "them"}.Stamp(nil), other: "them"},
		"Forged":      {reason: "What cannot be an identity is not repeated.", labels: map[string]string{fleetv1alpha1.ManagedByLabel: LabelValue, fleetv1alpha1.HubLabel: "A\n"}, other: "unknown"},
		"OtherHub":    {reason: "The label of a hub alone says nothing.", labels: map[string]string{fleetv1alpha1.HubLabel: "them"}},
		"TakenOver":   {reason: "A controller has it now, although it bears our label.", labels: owner.Stamp(nil), owners: controller, stamped: true},
	} {
		t.Run(name, func(t *testing.T) {
			m := GetMarks(&metav1.ObjectMeta{Labels: tc.labels, OwnerReferences: tc.owners})
			other, is := m.OtherHub(owner)
			if m.BelongTo(owner) != tc.ours || m.AreStamped(owner) != tc.stamped || other != tc.other || is != (tc.other != "") {
				t.Errorf("%s got ours %v, stamped %v, other %q", tc.reason, m.BelongTo(owner), m.AreStamped(owner), other)
			}
		})
	}
}

func TestSubject(t *testing.T) {
	other := GetMarks(&metav1.ObjectMeta{Labels: hubidentity.Owner{ID: "them"}.Stamp(nil)})
	for name, tc := range map[string]struct{ reason, got, want string }{
		"Definition": {"The message names the consequence.", Definition("x").NotOurs(Marks{}, owner, "nothing is looked at"),
			`The CustomResourceDefinition "x" already exists in the cluster and was not created by Masthead. It is left alone, and nothing is looked at.`},
		"Object": {"A kind begins with a capital already.", Object("Composition", "x").NotOurs(other, owner, ""),
			`Composition "x" was created in the cluster by the hub "them". It is left alone.`},
		"Refused": {"What a cluster says has no control characters.", Definition("x").Refused(errors.New("a\x1bb")),
			`The cluster refused the CustomResourceDefinition "x": a b`},
	} {
		t.Run(name, func(t *testing.T) {
			if tc.got != tc.want {
				t.Errorf("%s want %q, got %q", tc.reason, tc.want, tc.got)
			}
		})
	}
	if got := Definition("x").Refused(errors.New(strings.Repeat("a", 1<<20))); len(got) > 4<<10 {
		t.Errorf("what a cluster says is bounded, got %d bytes", len(got))
	}
}

func TestKeepStored(t *testing.T) {
	version := func(name string, storage, served bool) any {
		return map[string]any{"name": name, "storage": storage, "served": served}
	}
	have := func(stored ...any) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{
			"spec":   map[string]any{"versions": []any{version("v1", true, true), version("v2", false, true)}},
			"status": map[string]any{"storedVersions": stored},
		}}
	}
	wanted := []any{version("v2", true, true)}
	for name, tc := range map[string]struct {
		reason string
		have   *unstructured.Unstructured
		kept   func(map[string]any)
		want   []any
	}{
		"Stored":    {"An API server does not let it go.", have("v1", "v2"), nil, []any{wanted[0], version("v1", false, true)}},
		"NotServed": {"The caller says what else is done to it.", have("v1"), func(v map[string]any) { v["served"] = false }, []any{wanted[0], version("v1", false, false)}},
		"NotStored": {"Nothing is in it.", have("v2"), nil, wanted},
		"Forged":    {"A version that there is not cannot be kept.", have("v0", int64(7)), nil, wanted},
	} {
		t.Run(name, func(t *testing.T) {
			before := tc.have.DeepCopy()
			if diff := cmp.Diff(tc.want, KeepStored(wanted, tc.have, tc.kept)); diff != "" {
				t.Errorf("%s -want +got:\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(before, tc.have); diff != "" {
				t.Errorf("what there is must not change: -want +got:\n%s", diff)
			}
		})
	}
}

func TestOver(t *testing.T) {
	have := &unstructured.Unstructured{Object: map[string]any{
		"metadata": map[string]any{
			"name": "x", "uid": "1", "resourceVersion": "7", "labels": map[string]any{"team": "a", "keep": "no"},
			"annotations": map[string]any{"note": "n"}, "managedFields": []any{map[string]any{"manager": "m"}},
		},
		"spec": map[string]any{"added": "by another client"},
	}}
	w := Wanted{Content: map[string]any{"spec": map[string]any{"a": "b"}}, Name: "x", Labels: map[string]string{"keep": "yes"}, Annotations: map[string]string{"record": "h/2"}}
	for name, tc := range map[string]struct {
		reason string
		have   *unstructured.Unstructured
		exact  bool
		want   map[string]any
	}{
		"New": {reason: "There is nothing to keep.", want: map[string]any{
			"name": "x", "labels": map[string]any{"keep": "yes"}, "annotations": map[string]any{"record": "h/2"},
		}},
		"Over": {reason: "What others wrote stays, and what is wanted wins.", have: have, want: map[string]any{
			"name": "x", "uid": "1", "resourceVersion": "7", "labels": map[string]any{"team": "a", "keep": "yes"},
			"annotations": map[string]any{"note": "n", "record": "h/2"},
		}},
		"Exact": {reason: "A copy has the labels that it was copied with.", have: have, exact: true, want: map[string]any{
			"name": "x", "uid": "1", "resourceVersion": "7", "labels": map[string]any{"keep": "yes"},
			"annotations": map[string]any{"note": "n", "record": "h/2"},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			w := w
			w.ExactLabels = tc.exact
			want := map[string]any{"metadata": tc.want, "spec": map[string]any{"a": "b"}}
			if diff := cmp.Diff(want, w.Over(tc.have).Object); diff != "" {
				t.Errorf("%s -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// counting is a fake API server that counts generations.
type counting struct {
	generation int64
	calls      []string
	labels     map[string]string
}

func (c *counting) Get(context.Context, string, metav1.GetOptions, ...string) (*unstructured.Unstructured, error) {
	c.calls = append(c.calls, "get")
	return nil, errors.New("unexpected get")
}

func (c *counting) Create(_ context.Context, obj *unstructured.Unstructured, o metav1.CreateOptions, _ ...string) (*unstructured.Unstructured, error) {
	return c.took(obj, Create+" "+o.FieldManager)
}

func (c *counting) Update(_ context.Context, obj *unstructured.Unstructured, o metav1.UpdateOptions, _ ...string) (*unstructured.Unstructured, error) {
	return c.took(obj, Update+" "+o.FieldManager)
}

func (c *counting) took(obj *unstructured.Unstructured, call string) (*unstructured.Unstructured, error) {
	c.calls, c.labels = append(c.calls, call), obj.GetLabels()
	got := obj.DeepCopy()
	got.SetGeneration(c.generation)
	return got, nil
}

func TestWriter(t *testing.T) {
	manager := owner.FieldManager(fleetv1alpha1.FieldManager)
	w := Wanted{Content: map[string]any{}, Name: "x"}
	there := w.Over(nil)
	there.SetGeneration(1)
	for name, tc := range map[string]struct {
		reason     string
		have       *unstructured.Unstructured
		generation int64
		calls      []string
	}{
		"Create": {"There is none.", nil, 1, []string{Create + " " + manager}},
		"Update": {"It becomes what is wanted.", there, 2, []string{Update + " " + manager}},
		"Same":   {"Its content was right already, so that the record was wrong.", there, 1, []string{Update + " " + manager, Update + " " + manager}},
		"Forged": {"An API server that counts in another way is not written to without an end.", there, 99, []string{Update + " " + manager, Update + " " + manager}},
	} {
		t.Run(name, func(t *testing.T) {
			server := &counting{generation: tc.generation}
			wrote := 0
			writer := Writer{Objects: server, Owner: owner, Timeout: time.Minute, Wrote: func(string) { wrote++ }}
			_, err := writer.Write(t.Context(), tc.have, NextGeneration(tc.have, false),
				func(have *unstructured.Unstructured, _ int64) *unstructured.Unstructured { return w.Over(have) })
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.calls, server.calls); diff != "" || wrote != len(tc.calls) {
				t.Errorf("%s counted %d; -want +got:\n%s", tc.reason, wrote, diff)
			}
			if !owner.IsStamped(&metav1.ObjectMeta{Labels: server.labels}) {
				t.Errorf("want the labels of the hub, got %v", server.labels)
			}
		})
	}
}

// FuzzRecord reads annotations that the owner of a workload cluster wrote.
func FuzzRecord(f *testing.F) {
	f.Add("abc/4")
	f.Add("/")
	f.Add("a/-1")
	f.Fuzz(func(t *testing.T, annotation string) {
		r, ok := ParseRecord(annotation)
		if !ok {
			return
		}
		if again, ok := ParseRecord(r.String()); !ok || again != r {
			t.Errorf("%q is read as %v, which is read as %v", annotation, r, again)
		}
	})
}
