// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package discovery

import (
	"encoding/json"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/internal/test/discoverytest"
	"github.com/masthead-dev/masthead/pkg/install"
)

func findMirroredKind(resource string) mirroredKind {
	for _, k := range mirroredKinds() {
		if k.resource == resource {
			return k
		}
	}
	return mirroredKind{}
}

func TestGroupOf(t *testing.T) {
	cases := map[string]struct {
		reason, resource, want string
		spec                   map[string]any
	}{
		"XRD": {
			"A definition is about the group that it defines.", resourceXRD, "db.acmeco.org",
			map[string]any{"group": "db.acmeco.org"},
		},
		"Composition": {
			"A Composition is about the group of the kind that it composes.", resourceComposition, "db.acmeco.org",
			map[string]any{"compositeTypeRef": map[string]any{"apiVersion": "db.acmeco.org/v1"}},
		},
		"OldComposition": {
			"Crossplane v0.12 called that from.", resourceComposition, "db.acmeco.org",
			map[string]any{"from": map[string]any{"apiVersion": "db.acmeco.org/v1alpha1"}},
		},
		"CoreComposition": {
			"A version without a group is about none.", resourceComposition, "",
			map[string]any{"compositeTypeRef": map[string]any{"apiVersion": "v1"}},
		},
		"BrokenComposition": {
			"What is no version is about no group.", resourceComposition, "",
			map[string]any{"compositeTypeRef": map[string]any{"apiVersion": "a/b/c"}},
		},
		"Definition": {
			"An old definition has a template of the CRD.", resourceDefinition, "db.acmeco.org",
			map[string]any{"crdSpecTemplate": map[string]any{"group": "db.acmeco.org"}},
		},
		"Publication": {
			"An old publication names the definition, which has the name of the CRD.", resourcePublication, "db.acmeco.org",
			map[string]any{"infrastructureDefinitionRef": map[string]any{"name": "mysqlinstances.db.acmeco.org"}},
		},
		"PublicationOfNothing": {
			"A name without a group is about none.", resourcePublication, "",
			map[string]any{"infrastructureDefinitionRef": map[string]any{"name": "mysqlinstances"}},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := findMirroredKind(tc.resource).groupOf(tc.spec); got != tc.want {
				t.Errorf("%s: want %q, got %q", tc.reason, tc.want, got)
			}
		})
	}
}

func TestOffer(t *testing.T) {
	cases := map[string]struct {
		reason                                 string
		agent                                  fleetv1alpha1.AgentSpec
		definitions, compositions, inc, guards bool
	}{
		"Default": {
			"A class from before the field existed shows everything.",
			fleetv1alpha1.AgentSpec{Mode: fleetv1alpha1.AgentModeReadWrite}, true, true, true, true,
		},
		"DefinitionsOnly": {
			"Compositions can be kept in the hub.",
			fleetv1alpha1.AgentSpec{Mode: fleetv1alpha1.AgentModeReadWrite, Discovery: fleetv1alpha1.DiscoveryModeDefinitionsOnly}, true, false, true, true,
		},
		"None": {
			"Definitions of claim kinds are there, and protected, also where nothing is shown.",
			fleetv1alpha1.AgentSpec{Mode: fleetv1alpha1.AgentModeReadWrite, Discovery: fleetv1alpha1.DiscoveryModeNone}, false, false, true, true,
		},
		"Disabled": {
			"A cluster that is left alone is left alone.",
			fleetv1alpha1.AgentSpec{Mode: fleetv1alpha1.AgentModeDisabled, Discovery: fleetv1alpha1.DiscoveryModeFull}, false, false, true, false,
		},
		"DisabledWithApplications": {
			"The definition of Applications is protected without an agent, too.",
			fleetv1alpha1.AgentSpec{Mode: fleetv1alpha1.AgentModeDisabled, Discovery: fleetv1alpha1.DiscoveryModeFull}, false, false, true, true,
		},
		"OtherGroup": {
			"What the class does not offer is not shown.",
			fleetv1alpha1.AgentSpec{Mode: fleetv1alpha1.AgentModeReadWrite, APIGroups: []string{"net.acmeco.org"}}, true, true, false, true,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			mode := fleetv1alpha1.ApplicationsModeDisabled
			if name == "DisabledWithApplications" {
				mode = fleetv1alpha1.ApplicationsModeEnabled
			}
			o := newOffer(fleetv1alpha1.EnrollmentClassSpec{Agent: tc.agent, Applications: fleetv1alpha1.ApplicationsSpec{Mode: mode}})
			got := []bool{o.shows(resourceXRD), o.shows(resourceComposition), o.includes("db.acmeco.org"), o.protected}
			if diff := cmp.Diff([]bool{tc.definitions, tc.compositions, tc.inc, tc.guards}, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

func TestMirrorLeavesTheHubsOwnBehind(t *testing.T) {
	hub := discoverytest.NewObject(discoverytest.XRDKind, "x")
	hub.Object["metadata"] = map[string]any{
		"name": "x", "uid": "u", "resourceVersion": "7", "generation": int64(3),
		"labels":          map[string]any{"tier": "gold", "pkg.crossplane.io/package": "p", fleetv1alpha1.ManagedByLabel: "another"},
		"annotations":     map[string]any{"note": "n"},
		"ownerReferences": []any{map[string]any{"kind": "ConfigurationRevision"}},
		"finalizers":      []any{"defined.apiextensions.crossplane.io"},
		"managedFields":   []any{map[string]any{"manager": "m"}},
	}
	hub.Object["spec"] = map[string]any{
		"group": "db.acmeco.org", "conversion": map[string]any{"strategy": "Webhook"},
		"crdSpecTemplate": map[string]any{"group": "db.acmeco.org", "conversion": map[string]any{"strategy": "Webhook"}},
	}
	hub.Object["status"] = map[string]any{"conditions": []any{map[string]any{"type": "Offered"}}}
	before := hub.DeepCopy()
	m := mirrorFor(findMirroredKind(resourceXRD), hub)
	want := map[string]any{
		"apiVersion": "apiextensions.crossplane.io/v1", "kind": "CompositeResourceDefinition",
		"metadata": map[string]any{
			"name": "x", "labels": map[string]any{"tier": "gold", fleetv1alpha1.ManagedByLabel: install.LabelValue},
			"annotations": map[string]any{fleetv1alpha1.MirroredAnnotation: m.hash + "/1"},
		},
		"spec":   map[string]any{"group": "db.acmeco.org", "crdSpecTemplate": map[string]any{"group": "db.acmeco.org"}},
		"status": map[string]any{"conditions": []any{map[string]any{"type": "Offered"}}},
	}
	if diff := cmp.Diff(want, m.written(nil, m.nextGeneration(nil)).Object); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(before, hub); diff != "" {
		t.Errorf("the hub's object is shared and must not change (-want +got):\n%s", diff)
	}
}

func TestMirrorWithoutWhatTheClassExcludes(t *testing.T) {
	hub := discoverytest.NewObject(discoverytest.XRDKind, "x")
	hub.SetLabels(map[string]string{"tier": "gold", "deploy.acmeco.org/release": "r", "argocd.argoproj.io/instance": "a"})
	hub.Object["spec"] = map[string]any{"group": "db.acmeco.org"}
	m := mirrorFor(findMirroredKind(resourceXRD), hub)
	for reason, tc := range map[string]struct {
		excluded []string
		want     map[string]string
	}{
		"Without exclusions, only what never travels is left out.": {
			want: map[string]string{"tier": "gold", "deploy.acmeco.org/release": "r", fleetv1alpha1.ManagedByLabel: install.LabelValue},
		},
		"The class can exclude more, but not the mark of a copy.": {
			excluded: []string{"acmeco.org/*", fleetv1alpha1.ManagedByLabel},
			want:     map[string]string{"tier": "gold", fleetv1alpha1.ManagedByLabel: install.LabelValue},
		},
	} {
		got := m.without(tc.excluded)
		if diff := cmp.Diff(tc.want, got.object.GetLabels()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", reason, diff)
		}
		if len(m.object.GetLabels()) != 3 || got.hash != m.hash {
			t.Errorf("%s want the mirror of all clusters unchanged, and the same content", reason)
		}
	}
}

func TestRecord(t *testing.T) {
	m := newMirror(&unstructured.Unstructured{Object: map[string]any{
		"metadata": map[string]any{"name": "x"}, "spec": map[string]any{"a": "b"},
	}})
	m.exactLabels = true
	held := m.written(nil, 4)
	held.SetLabels(discoverytest.Owner.Stamp(held.GetLabels()))
	held.SetGeneration(4)
	cases := map[string]struct {
		reason     string
		change     func(*unstructured.Unstructured)
		content    bool
		labels     bool
		generation int64
	}{
		"AsWritten": {"What has the generation that it was written with has not changed.", func(*unstructured.Unstructured) {}, true, true, 4},
		"Edited":    {"An edit makes another generation, and so does putting it back.", func(u *unstructured.Unstructured) { u.SetGeneration(5) }, false, true, 6},
		"Labelled": {"A label makes no generation, nor does removing it.", func(u *unstructured.Unstructured) {
			u.SetLabels(discoverytest.Owner.Stamp(map[string]string{"x": "y"}))
		}, true, false, 4},
		"Unnamed": {"One from before hubs had identities is given ours.", func(u *unstructured.Unstructured) {
			u.SetLabels(map[string]string{fleetv1alpha1.ManagedByLabel: install.LabelValue})
		}, true, false, 4},
		"OtherContent": {"What was copied has changed.", func(u *unstructured.Unstructured) {
			u.SetAnnotations(map[string]string{fleetv1alpha1.MirroredAnnotation: "other/4"})
		}, false, true, 5},
		"NoRecord": {"What is not known is written.", func(u *unstructured.Unstructured) { u.SetAnnotations(nil) }, false, true, 5},
		"BrokenRecord": {"So is what cannot be read.", func(u *unstructured.Unstructured) {
			u.SetAnnotations(map[string]string{fleetv1alpha1.MirroredAnnotation: m.hash + "/four"})
		}, false, true, 5},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			have := held.DeepCopy()
			tc.change(have)
			if got := m.contentAsRecorded(have); got != tc.content {
				t.Errorf("%s: content: want %v, got %v", tc.reason, tc.content, got)
			}
			if got := m.labelled(have, discoverytest.Owner); got != tc.labels {
				t.Errorf("%s: labels: want %v, got %v", tc.reason, tc.labels, got)
			}
			if got := m.nextGeneration(have); got != tc.generation {
				t.Errorf("%s: generation: want %d, got %d", tc.reason, tc.generation, got)
			}
		})
	}
}

func TestCheckUser(t *testing.T) {
	cases := map[string]struct {
		reason, name string
		ok           bool
	}{
		"ServiceAccount": {"The usual one.", "system:serviceaccount:masthead-system:masthead", true},
		"Quoted":         {"Quotes are quoted.", `a"b\c`, true},
		"Empty":          {"A policy for an empty name would refuse every user.", "", false},
		"Anonymous":      {"A policy for an anonymous user would allow every client.", "system:anonymous", false},
		"Long":           {"The policy must stay small.", strings.Repeat("a", maxUserName+1), false},
		"Control":        {"What cannot be printed is no name.", "a\nb", false},
		"NotUTF8":        {"Nor is what is no text.", "a\xffb", false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if err := checkUser(tc.name); (err == nil) != tc.ok {
				t.Errorf("%s: got %v", tc.reason, err)
			}
		})
	}
}

// FuzzPolicyUser puts names that the owner of a workload cluster chose into the policy.
func FuzzPolicyUser(f *testing.F) {
	f.Add(`x"] || true || "" in ["`)
	f.Add("системный")
	f.Fuzz(func(t *testing.T, name string) {
		if checkUser(name) != nil {
			return
		}
		expression := text(policyFor(name).object.Object["spec"].(map[string]any)["validations"].([]any)[0].(map[string]any), "expression")
		rest, found := strings.CutPrefix(expression, "request.userInfo.username in [")
		quoted, err := strconv.QuotedPrefix(rest)
		if !found || err != nil {
			t.Fatalf("no quoted name in %s", expression)
		}
		if got, err := strconv.Unquote(quoted); err != nil || got != name {
			t.Errorf("want %q, got %q (%v)", name, got, err)
		}
	})
}

// FuzzMirror copies objects of the hub, of any shape.
func FuzzMirror(f *testing.F) {
	f.Add([]byte(`{"metadata":{"name":"x","labels":{"a":"b"}},"spec":{"group":"g","crdSpecTemplate":{"conversion":{}}},"status":{}}`))
	f.Add([]byte(`{"metadata":{"labels":7},"spec":[],"status":"x"}`))
	f.Add([]byte(`{"spec":{"versions":[1,{"subresources":[]}],"conversion":7}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		content := map[string]any{}
		if json.Unmarshal(data, &content) != nil {
			return
		}
		hub := &unstructured.Unstructured{Object: content}
		for _, k := range mirroredKinds() {
			m := mirrorFor(k, hub)
			if !install.GetMarks(m.object).IsMastheads() || strings.Contains(string(must(json.Marshal(m.object.Object["metadata"]))), "finalizers") {
				t.Errorf("a copy of %s is %v", data, m.object.Object)
			}
			_, _ = servedKind(hub, k.resource)
		}
		if spec, ok := newDefinitionMirror(hub).object.Object["spec"].(map[string]any); !ok || text(spec, "conversion", "strategy") != "None" {
			t.Errorf("a definition of %s has the conversion %v", data, spec["conversion"])
		}
	})
}

func must(data []byte, err error) []byte {
	if err != nil {
		panic(err)
	}
	return data
}
