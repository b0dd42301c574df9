// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package propagation

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/masthead-dev/masthead/internal/test/agenttest"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/ownership"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/ownership/ownershiptest"
	"github.com/masthead-dev/masthead/pkg/crossplane"
)

func TestIntentHasTheRequestedKindAndName(t *testing.T) {
	forged := agenttest.Parse(t, `{'apiVersion':'v1','kind':'Secret','metadata':{'name':'other','namespace':'kube-system'},'spec':{}}`)
	got := buildIntent(forged, ownershiptest.InBar("db"), ownership.Source{Identifier: "w1", Namespace: "foo"}, crossplane.FormClaim)
	if got.GroupVersionKind() != ownershiptest.InBar("").Kind.GroupVersionKind || got.GetNamespace() != "bar" || got.GetName() != "db" {
		t.Errorf("want the kind and name of the request, regardless of the claim, got %v", got.Object)
	}
}

func TestTravelling(t *testing.T) {
	in := map[string]string{
		"team": "a", "example.org/note": "b", "app.kubernetes.io/name": "c", "notk8s.io/x": "d",
		"crossplane.io/paused": "-", "agent.masthead.dev/x": "-", "kubectl.kubernetes.io/last-applied-configuration": "-",
		"cluster.x-k8s.io/paused": "-", "rbac.authorization.k8s.io/aggregate-to-admin": "-", "kubernetes.io/x": "-", "k8s.io/x": "-",
		"sub.app.kubernetes.io/x": "-", "argocd.argoproj.io/tracking-id": "-", "deploy.acmeco.org/release": "-", "release": "-",
	}
	want := map[string]string{"team": "a", "example.org/note": "b", "app.kubernetes.io/name": "c", "notk8s.io/x": "d"}
	claim := &unstructured.Unstructured{Object: map[string]any{}}
	claim.SetLabels(in)
	claim.SetAnnotations(in)
	us := ownership.Source{Identifier: "id", Namespace: "ns"}
	got := buildIntent(claim, ownership.Place{}, us, crossplane.FormClaim, "acmeco.org/*", "release")
	if diff := cmp.Diff(want, got.GetLabels()); diff != "" {
		t.Errorf("want the user's labels only (-want +got):\n%s", diff)
	}
	annotations := got.GetAnnotations()
	for key := range us.Annotations() {
		delete(annotations, key)
	}
	delete(annotations, ownership.AppliedHashAnnotation)
	if diff := cmp.Diff(want, annotations); diff != "" {
		t.Errorf("want the user's annotations only (-want +got):\n%s", diff)
	}
}

func TestApplied(t *testing.T) {
	us := ownership.Source{Identifier: "w1", Namespace: "foo"}
	const claim = `{'metadata':{'name':'db','labels':{'team':'a'}},'spec':{'version':'5.7','size':20,'tags':['x'],'compositionRef':{'name':'mine'},'nothing':null,'empty':{}}}`
	for name, tc := range map[string]struct {
		reason string
		change func(hub *unstructured.Unstructured)
		want   bool
	}{
		"Same": {reason: "What was applied is there.", change: func(*unstructured.Unstructured) {}, want: true},
		"LateInitialised": {
			reason: "What Crossplane fills in is no difference.",
			change: func(u *unstructured.Unstructured) { set(u, "xdb-1", "spec", "resourceRef", "name") }, want: true,
		},
		"CrossplanesOwn": {
			reason: "What Crossplane overrides is not fought.",
			change: func(u *unstructured.Unstructured) { set(u, "enforced", "spec", "compositionRef", "name") }, want: true,
		},
		"Drift":        {reason: "A changed field is a difference.", change: func(u *unstructured.Unstructured) { set(u, "8", "spec", "version") }},
		"RemovedField": {reason: "A removed field is.", change: func(u *unstructured.Unstructured) { unstructured.RemoveNestedField(u.Object, "spec", "size") }},
		"LongerList": {
			reason: "A longer list is.",
			change: func(u *unstructured.Unstructured) {
				_ = unstructured.SetNestedStringSlice(u.Object, []string{"x", "y"}, "spec", "tags")
			},
		},
		"RemovedLabel": {reason: "A removed label is.", change: func(u *unstructured.Unstructured) { u.SetLabels(nil) }},
		"OtherHash": {
			reason: "An object that was applied with another intent has fields that are not wanted any more, even if all that are wanted are there.",
			change: func(u *unstructured.Unstructured) {
				a := u.GetAnnotations()
				a[ownership.AppliedHashAnnotation] = "another"
				u.SetAnnotations(a)
			},
		},
		"NullForEmpty": {
			reason: "Where any content is accepted, null is not what was wanted.",
			change: func(u *unstructured.Unstructured) { u.Object["spec"].(map[string]any)["empty"] = nil },
		},
		"FloatForInteger": {reason: "The same number in another form is the same.", change: func(u *unstructured.Unstructured) {
			u.Object["spec"].(map[string]any)["size"] = 20.0
		}, want: true},
	} {
		t.Run(name, func(t *testing.T) {
			intent := buildIntent(agenttest.Parse(t, claim), ownershiptest.InBar("db"), us, crossplane.FormClaim)
			hub := intent.DeepCopy()
			unstructured.RemoveNestedField(hub.Object, "spec", "nothing")
			tc.change(hub)
			if got := Applied(intent, hub, crossplane.FormClaim); got != tc.want {
				t.Errorf("%s want %v, got %v", tc.reason, tc.want, got)
			}
		})
	}
}

func set(u *unstructured.Unstructured, value string, path ...string) {
	_ = unstructured.SetNestedField(u.Object, value, path...)
}

func TestIntentChangesWithTheClaimOnly(t *testing.T) {
	us := ownership.Source{Identifier: "w1", Namespace: "foo"}
	claim := agenttest.Parse(t, `{'metadata':{'name':'db','labels':{'team':'a'}},'spec':{'version':'5.7'}}`)
	before := buildIntent(claim, ownershiptest.InBar("db"), us, crossplane.FormClaim).GetAnnotations()[ownership.AppliedHashAnnotation]

	// Changes of the claim in the workload cluster that are not pushed leave the intent unchanged.
	claim.SetFinalizers([]string{"x"})
	claim.SetResourceVersion("7")
	claim.SetManagedFields([]metav1.ManagedFieldsEntry{{Manager: "x"}})
	claim.SetOwnerReferences([]metav1.OwnerReference{{Name: "x"}})
	claim.SetAnnotations(map[string]string{"kubectl.kubernetes.io/last-applied-configuration": "{}", "crossplane.io/paused": "true"})
	set(claim, "x", "status", "address")
	set(claim, "x", "spec", "resourceRef", "name")
	intent := buildIntent(claim, ownershiptest.InBar("db"), us, crossplane.FormClaim)
	if got := intent.GetAnnotations()[ownership.AppliedHashAnnotation]; got != before {
		t.Errorf("want the same hash, got %q and %q", before, got)
	}
	if intent.Object["status"] != nil || intent.GetFinalizers() != nil || intent.GetOwnerReferences() != nil || intent.GetUID() != "" {
		t.Errorf("want nothing but what may travel, got %v", intent.Object)
	}

	unstructured.RemoveNestedField(claim.Object, "spec", "version")
	if got := buildIntent(claim, ownershiptest.InBar("db"), us, crossplane.FormClaim).GetAnnotations()[ownership.AppliedHashAnnotation]; got == before {
		t.Error("want another hash when a field is removed")
	}
}

// FuzzIntent throws at IntentOf what the owner of a workload cluster could write.
func FuzzIntent(f *testing.F) {
	f.Add(`{"metadata":{"name":"db","annotations":{"agent.crossplane.io/source-uid":"forged"}},"spec":{"resourceRef":{"name":"x"}}}`)
	f.Add(`{"metadata":{"name":"db"},"spec":{"resourceRefs":[{"name":"x"}],"crossplane":{"resourceRefs":[{"name":"x"}]}}}`)
	f.Add(`{"metadata":{"name":"db","labels":{"/":"x","crossplane.io/x":"y"}},"spec":[]}`)
	f.Add(`{"metadata":{"annotations":{"a.crossplane.io/":"","crossplane.io":"","xcrossplane.io/a":"b"}},"spec":null}`)
	f.Fuzz(func(t *testing.T, data string) {
		content := map[string]any{}
		if json.Unmarshal([]byte(data), &content) != nil {
			return
		}
		content["apiVersion"], content["kind"] = "db.acmeco.org/v1", "MySQLInstance"
		normal, err := json.Marshal(content)
		if err != nil {
			return
		}
		claim := &unstructured.Unstructured{}
		if claim.UnmarshalJSON(normal) != nil {
			return
		}
		us := ownership.Source{Identifier: "w1", Namespace: "foo"}
		before := claim.DeepCopy()
		intent := buildIntent(claim, ownershiptest.InBar("db"), us, crossplane.FormClaim)
		if diff := cmp.Diff(before.Object, claim.Object); diff != "" {
			t.Errorf("want the claim unchanged (-before +after):\n%s", diff)
		}
		if ownership.Classify(true, intent, us) != ownership.Ours || intent.GetNamespace() != "bar" {
			t.Errorf("want it to be ours and in the target namespace, got %v", intent.Object)
		}
		spec, _ := intent.Object["spec"].(map[string]any)
		if diff := cmp.Diff(crossplane.FormClaim.Pushable(spec), spec); diff != "" {
			t.Errorf("want only what may be pushed (-want +got):\n%s", diff)
		}
		for k := range intent.GetLabels() {
			if domain, _, _ := strings.Cut(k, "/"); strings.Contains(k, "/") && strings.HasSuffix("."+domain, ".crossplane.io") {
				t.Errorf("want no label of Crossplane, got %q", k)
			}
		}
		for k := range intent.Object {
			if k != "apiVersion" && k != "kind" && k != "metadata" && k != "spec" {
				t.Errorf("want nothing but a spec, got %q", k)
			}
		}
		if !Applied(intent, intent.DeepCopy(), crossplane.FormClaim) {
			t.Errorf("want an intent to be satisfied by itself, got %v", intent.Object)
		}
	})
}

// buildIntent is Intent with only the annotations that name the source.
func buildIntent(claim *unstructured.Unstructured, place ownership.Place, us ownership.Source, f crossplane.Form, excluded ...string) *unstructured.Unstructured {
	return Intent(claim, place, us.Annotations(), f, excluded...)
}
