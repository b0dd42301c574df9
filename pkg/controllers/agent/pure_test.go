// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/hubidentity"
	"github.com/masthead-dev/masthead/pkg/kindwatch"
)

// parse makes an object of JSON, in which single quotes stand for double ones.
func parse(t *testing.T, s string) *unstructured.Unstructured {
	t.Helper()
	u := &unstructured.Unstructured{}
	if s = strings.ReplaceAll(s, "'", `"`); s == "" {
		return nil
	}
	if !strings.Contains(s, `"kind"`) {
		s = `{"apiVersion":"db.acmeco.org/v1","kind":"MySQLInstance",` + strings.TrimPrefix(strings.TrimPrefix(s, "{"), " ")
		s = strings.Replace(s, ",}", "}", 1)
	}
	if err := u.UnmarshalJSON([]byte(s)); err != nil {
		t.Fatalf("%v in %s", err, s)
	}
	return u
}

// bar is a place in the namespace "bar" of the hub.
func bar(name string) hubKey {
	return hubKey{
		kind: kindwatch.Kind{
			GroupVersionKind: schema.GroupVersionKind{Group: "db.acmeco.org", Version: "v1", Kind: "MySQLInstance"}, Resource: "mysqlinstances",
		},
		NamespacedName: types.NamespacedName{Namespace: "bar", Name: name},
	}
}

func TestIntentIsOfTheKindAndNameThatWereAskedFor(t *testing.T) {
	forged := parse(t, `{'apiVersion':'v1','kind':'Secret','metadata':{'name':'other','namespace':'kube-system'},'spec':{}}`)
	got := intentOf(forged, bar("db"), source{"w1", "foo"}, formClaim)
	if got.GroupVersionKind() != bar("").kind.GroupVersionKind || got.GetNamespace() != "bar" || got.GetName() != "db" {
		t.Errorf("want the kind and name of the request whatever the claim says, got %v", got.Object)
	}
}

func TestPublicationOf(t *testing.T) {
	const offeredStatus = `'status':{'conditions':[{'type':'Established','status':'True'},{'type':'Offered','status':'True'}]}`
	xrd := func(spec, status, metadata string) string {
		return `{'apiVersion':'apiextensions.crossplane.io/v1','kind':'CompositeResourceDefinition','metadata':{'name':'xdbs.acmeco.org'` +
			metadata + `},'spec':{'group':'acmeco.org',` + spec + `},` + status + `}`
	}
	const names = `'claimNames':{'kind':'DB','plural':'dbs'}`
	kind := func(version string) publication {
		return publication{publisher: "CompositeResourceDefinition/xdbs.acmeco.org", form: formClaim, kind: kindwatch.Kind{
			GroupVersionKind: schema.GroupVersionKind{Group: "acmeco.org", Version: version, Kind: "DB"}, Resource: "dbs",
		}}
	}
	for name, tc := range map[string]struct {
		reason string
		xrd    string
		want   publication
	}{
		"Offered": {
			reason: "An XRD whose claim is offered publishes it in the version that is stored.",
			xrd:    xrd(names+`,'versions':[{'name':'v1alpha1','served':true},{'name':'v1','served':true,'referenceable':true}]`, offeredStatus, ""),
			want:   kind("v1"),
		},
		"StoredVersionNotServed": {
			reason: "If the stored version is not served, the first that is served has to do.",
			xrd:    xrd(names+`,'versions':[{'name':'v2','referenceable':true},{'name':'v1beta1','served':true},{'name':'v1','served':true}]`, offeredStatus, ""),
			want:   kind("v1beta1"),
		},
		"NoVersionServed": {
			reason: "A kind that is served in no version is not published.",
			xrd:    xrd(names+`,'versions':[{'name':'v2','referenceable':true}]`, offeredStatus, ""),
		},
		"NoClaim": {
			reason: "An XRD without claimNames, such as each one with scope Namespaced, publishes no claim kind.",
			xrd:    xrd(`'versions':[{'name':'v1','served':true,'referenceable':true}]`, offeredStatus, ""),
		},
		"NotOfferedYet": {
			reason: "As long as Crossplane has not established the claim CRD, there is nothing to pull.",
			xrd:    xrd(names+`,'versions':[{'name':'v1','served':true}]`, `'status':{'conditions':[{'type':'Established','status':'True'},{'type':'Offered','status':'False'}]}`, ""),
		},
		"Deleting": {
			reason: "An XRD that is being deleted takes its claims with it, whatever its conditions still say.",
			xrd:    xrd(names+`,'versions':[{'name':'v1','served':true}]`, offeredStatus, `,'deletionTimestamp':'2026-01-01T00:00:00Z'`),
		},
		"Malformed": {
			reason: "What is not what it should be is not published, and nothing panics.",
			xrd:    xrd(`'claimNames':'x','versions':['v1',3]`, offeredStatus, ""),
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, ok := publicationOf(parse(t, tc.xrd))
			if diff := cmp.Diff(tc.want, got, cmp.AllowUnexported(publication{})); diff != "" || ok != (tc.want != publication{}) {
				t.Errorf("%s got %v (-want +got):\n%s", tc.reason, ok, diff)
			}
		})
	}
}

func TestOffers(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		agent  fleetv1alpha1.AgentSpec
		want   bool
	}{
		"Everything": {reason: "No list of groups means every group.", agent: fleetv1alpha1.AgentSpec{}, want: true},
		"Listed":     {reason: "A group that is listed is offered.", agent: fleetv1alpha1.AgentSpec{APIGroups: []string{"a.org", "b.org"}}, want: true},
		"NotListed":  {reason: "A group that is not listed is not, even if it ends like one that is.", agent: fleetv1alpha1.AgentSpec{APIGroups: []string{"org", "x.b.org"}}},
		"Disabled":   {reason: "A disabled agent offers nothing.", agent: fleetv1alpha1.AgentSpec{Mode: fleetv1alpha1.AgentModeDisabled}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := offers(tc.agent, "b.org"); got != tc.want {
				t.Errorf("%s want %v, got %v", tc.reason, tc.want, got)
			}
		})
	}
}

func TestOwnershipOf(t *testing.T) {
	us := source{identifier: "w1", namespace: "foo"}
	for name, tc := range map[string]struct {
		reason      string
		us          source
		absent      bool
		annotations map[string]string
		want        ownership
	}{
		"None":  {reason: "No object is nobody's.", us: us, absent: true, want: ownershipNone},
		"Ours":  {reason: "Both annotations are ours.", us: us, annotations: us.annotations(), want: ownershipOurs},
		"Other": {reason: "Another cluster.", us: us, annotations: source{"w2", "foo"}.annotations(), want: ownershipForeign},
		"OtherNamespace": {
			reason: "Another namespace of the same cluster is as foreign as another cluster.",
			us:     us, annotations: source{"w1", "bar"}.annotations(), want: ownershipForeign,
		},
		"Unowned":    {reason: "An object without annotations is not free for the taking.", us: us, annotations: map[string]string{"a": "b"}, want: ownershipUnowned},
		"HalfNamed":  {reason: "Half a source is nobody we know.", us: us, annotations: map[string]string{fleetv1alpha1.SourceUIDAnnotation: "w1"}, want: ownershipForeign},
		"Anonymous":  {reason: "A cluster without identifier owns nothing.", us: source{"", "foo"}, annotations: source{"", "foo"}.annotations(), want: ownershipForeign},
		"CaseFolded": {reason: "Identifiers are compared as they are.", us: us, annotations: source{"W1", "foo"}.annotations(), want: ownershipForeign},
	} {
		t.Run(name, func(t *testing.T) {
			obj := &metav1.ObjectMeta{Annotations: tc.annotations}
			if got := ownershipOf(!tc.absent, obj, tc.us); got != tc.want {
				t.Errorf("%s want %s, got %s", tc.reason, tc.want, got)
			}
		})
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
	us := source{"id", "ns"}
	got := intentOf(claim, hubKey{}, us, formClaim, "acmeco.org/*", "release")
	if diff := cmp.Diff(want, got.GetLabels()); diff != "" {
		t.Errorf("want the user's labels only (-want +got):\n%s", diff)
	}
	annotations := got.GetAnnotations()
	for key := range us.annotations() {
		delete(annotations, key)
	}
	delete(annotations, AppliedHashAnnotation)
	if diff := cmp.Diff(want, annotations); diff != "" {
		t.Errorf("want the user's annotations only (-want +got):\n%s", diff)
	}
}

func TestFieldManager(t *testing.T) {
	long := strings.Repeat("x", 200)
	if got := fieldManager("0e2d"); got != "masthead-0e2d" {
		t.Errorf("want a UID to be taken as it is, got %q", got)
	}
	if got := fieldManager("a\nü"); !strings.HasPrefix(got, "masthead-a__-") {
		t.Errorf("want what the API server refuses to be replaced, got %q", got)
	}
	if a, b := fieldManager(long+"a"), fieldManager(long+"b"); a == b || len(a) > maxFieldManagerLength || len(b) > maxFieldManagerLength {
		t.Errorf("want two short names for two long identifiers, got %q and %q", a, b)
	}
	if a, b := fieldManager("a\nb"), fieldManager("a_b"); a == b {
		t.Errorf("want different names for different identifiers, got %q twice", a)
	}
}

func TestApplied(t *testing.T) {
	us := source{"w1", "foo"}
	const claim = `{'metadata':{'name':'db','labels':{'team':'a'}},'spec':{'version':'5.7','size':20,'tags':['x'],'compositionRef':{'name':'mine'},'nothing':null}}`
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
				a[AppliedHashAnnotation] = "another"
				u.SetAnnotations(a)
			},
		},
		"FloatForInteger": {reason: "The same number in another form is the same.", change: func(u *unstructured.Unstructured) {
			u.Object["spec"].(map[string]any)["size"] = 20.0
		}, want: true},
	} {
		t.Run(name, func(t *testing.T) {
			intent := intentOf(parse(t, claim), bar("db"), us, formClaim)
			hub := intent.DeepCopy()
			unstructured.RemoveNestedField(hub.Object, "spec", "nothing")
			tc.change(hub)
			if got := applied(intent, hub, formClaim); got != tc.want {
				t.Errorf("%s want %v, got %v", tc.reason, tc.want, got)
			}
		})
	}
}

func set(u *unstructured.Unstructured, value string, path ...string) {
	_ = unstructured.SetNestedField(u.Object, value, path...)
}

func TestIntentChangesWithTheClaimOnly(t *testing.T) {
	us := source{"w1", "foo"}
	claim := parse(t, `{'metadata':{'name':'db','labels':{'team':'a'}},'spec':{'version':'5.7'}}`)
	before := intentOf(claim, bar("db"), us, formClaim).GetAnnotations()[AppliedHashAnnotation]

	// What happens to the claim in the workload cluster that does not travel makes no other intent.
	claim.SetFinalizers([]string{"x"})
	claim.SetResourceVersion("7")
	claim.SetManagedFields([]metav1.ManagedFieldsEntry{{Manager: "x"}})
	claim.SetOwnerReferences([]metav1.OwnerReference{{Name: "x"}})
	claim.SetAnnotations(map[string]string{"kubectl.kubernetes.io/last-applied-configuration": "{}", "crossplane.io/paused": "true"})
	set(claim, "x", "status", "address")
	set(claim, "x", "spec", "resourceRef", "name")
	intent := intentOf(claim, bar("db"), us, formClaim)
	if got := intent.GetAnnotations()[AppliedHashAnnotation]; got != before {
		t.Errorf("want the same hash, got %q and %q", before, got)
	}
	if intent.Object["status"] != nil || intent.GetFinalizers() != nil || intent.GetOwnerReferences() != nil || intent.GetUID() != "" {
		t.Errorf("want nothing but what may travel, got %v", intent.Object)
	}

	unstructured.RemoveNestedField(claim.Object, "spec", "version")
	if got := intentOf(claim, bar("db"), us, formClaim).GetAnnotations()[AppliedHashAnnotation]; got == before {
		t.Error("want another hash when a field is removed")
	}
}

// FuzzIntentOf throws at intentOf what the owner of a workload cluster could write.
func FuzzIntentOf(f *testing.F) {
	f.Add(`{"metadata":{"name":"db","annotations":{"agent.crossplane.io/source-uid":"forged"}},"spec":{"resourceRef":{"name":"x"}}}`)
	f.Add(`{"metadata":{"name":"db","labels":{"/":"x","crossplane.io/x":"y"}},"spec":[]}`)
	f.Add(`{"metadata":{"annotations":{"a.crossplane.io/":"","crossplane.io":"","xcrossplane.io/a":"b"}},"spec":null}`)
	f.Fuzz(func(t *testing.T, data string) {
		content := map[string]any{}
		if json.Unmarshal([]byte(data), &content) != nil {
			t.Skip()
		}
		content["apiVersion"], content["kind"] = "db.acmeco.org/v1", "MySQLInstance"
		normal, err := json.Marshal(content)
		if err != nil {
			t.Skip()
		}
		claim := &unstructured.Unstructured{}
		if claim.UnmarshalJSON(normal) != nil {
			t.Skip()
		}
		us := source{"w1", "foo"}
		before := claim.DeepCopy()
		intent := intentOf(claim, bar("db"), us, formClaim)
		if diff := cmp.Diff(before.Object, claim.Object); diff != "" {
			t.Errorf("want the claim unchanged (-before +after):\n%s", diff)
		}
		if ownershipOf(true, intent, us) != ownershipOurs || intent.GetNamespace() != "bar" {
			t.Errorf("want it to be ours and in the target namespace, got %v", intent.Object)
		}
		if _, ok, _ := unstructured.NestedFieldNoCopy(intent.Object, "spec", "resourceRef"); ok {
			t.Errorf("want no resourceRef, got %v", intent.Object)
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
		if !applied(intent, intent.DeepCopy(), formClaim) {
			t.Errorf("want an intent to be satisfied by itself, got %v", intent.Object)
		}
	})
}

func TestStatusOf(t *testing.T) {
	now := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	const at, earlier = "'lastTransitionTime':'2026-05-01T12:00:00Z'", "'lastTransitionTime':'2026-01-01T00:00:00Z'"
	const synced = `{'type':'AgentSynced','status':'True','reason':'Synced','message':'The hub holds this claim.','observedGeneration':3,`
	const conflicted = `{'type':'AgentSynced','status':'False','reason':'Conflict','message':'taken','observedGeneration':3,`
	const awaiting = `{'type':'Reconciling','status':'True','reason':'AwaitingHub','message':'The hub has not reported yet whether this claim is ready as it is now',` +
		`'observedGeneration':3,` + at + `},`
	const stalled = `{'type':'Stalled','status':'True','reason':'Conflict','message':'taken','observedGeneration':3,` + at + `},`
	taken := &problem{reason: ReasonConflict, message: "taken"}
	for name, tc := range map[string]struct {
		reason     string
		claim, hub string
		behind     bool
		problem    *problem
		want       string
	}{
		"Generation": {
			reason: "What has observed the hub's object as it is, has observed the claim as it is.",
			claim:  `{'metadata':{'generation':3}}`,
			hub:    `{'metadata':{'generation':9},'status':{'conditions':[{'type':'Ready','observedGeneration':9}]}}`,
			want:   `{'conditions':[{'type':'Ready','observedGeneration':3},` + synced + at + `}]}`,
		},
		"GenerationNotObserved": {
			reason: "A high number of the hub's does not make an edit of the claim look observed.",
			claim:  `{'metadata':{'generation':3}}`,
			hub:    `{'metadata':{'generation':9},'status':{'conditions':[{'type':'Ready','observedGeneration':8}]}}`,
			want:   `{'conditions':[{'type':'Ready','observedGeneration':2},` + awaiting + synced + at + `}]}`,
		},
		"GenerationNotPushed": {
			reason:  "What the hub has observed is not what the claim says while the claim could not be pushed.",
			claim:   `{'metadata':{'generation':3}}`,
			hub:     `{'metadata':{'generation':2},'status':{'conditions':[{'type':'Ready','observedGeneration':2}]}}`,
			behind:  true,
			problem: taken,
			want:    `{'conditions':[{'type':'Ready','observedGeneration':2},` + stalled + conflicted + at + `}]}`,
		},
		"Whole": {
			reason: "The hub's status comes whole, and our condition with it.",
			claim:  `{'metadata':{'generation':3}}`,
			hub:    `{'status':{'address':'a','conditions':[{'type':'Ready','status':'True'}]}}`,
			want:   `{'address':'a','conditions':[{'type':'Ready','status':'True'},` + synced + at + `}]}`,
		},
		"Replaces": {
			reason: "What the hub does not say any more goes.",
			claim:  `{'metadata':{'generation':3},'status':{'old':'x','conditions':[` + synced + earlier + `},{'type':'Old'}]}}`,
			hub:    `{'status':{'address':'a'}}`,
			want:   `{'address':'a','conditions':[` + awaiting + synced + earlier + `}]}`,
		},
		"Transition": {
			reason: "The time of the transition changes with the status of the condition.",
			claim:  `{'metadata':{'generation':3},'status':{'conditions':[` + conflicted + earlier + `}]}}`,
			hub:    `{}`,
			want:   `{'conditions':[` + awaiting + synced + at + `}]}`,
		},
		"NoHub": {
			reason:  "Without an object in the hub, what the claim shows stays, except for our condition.",
			claim:   `{'metadata':{'generation':3},'status':{'address':'a','conditions':[` + synced + earlier + `},{'type':'Ready','status':'True'}]}}`,
			problem: taken,
			want:    `{'address':'a','conditions':[{'type':'Ready','status':'True'},` + stalled + conflicted + at + `}]}`,
		},
		"HubOfAHub": {
			reason: "A condition AgentSynced of the hub's own is not brought along.",
			claim:  `{'metadata':{'generation':3}}`,
			hub:    `{'status':{'conditions':[{'type':'AgentSynced','status':'False'}]}}`,
			want:   `{'conditions':[` + awaiting + synced + at + `}]}`,
		},
		"TheirsIsOverridden": {
			reason:  "What keeps the claim from being synchronised is said once, and not what the hub says of an older state.",
			claim:   `{'metadata':{'generation':3}}`,
			hub:     `{'status':{'conditions':[{'type':'Reconciling','status':'True'},{'type':'Stalled','status':'False'}]}}`,
			problem: taken,
			want:    `{'conditions':[` + stalled + conflicted + at + `}]}`,
		},
		"TheirsIsShown": {
			reason: "A composition may say so itself.",
			claim:  `{'metadata':{'generation':3}}`,
			hub:    `{'status':{'conditions':[{'type':'Ready'},{'type':'Stalled','status':'True','reason':'Quota'}]}}`,
			want:   `{'conditions':[{'type':'Ready'},{'type':'Stalled','status':'True','reason':'Quota'},` + synced + at + `}]}`,
		},
		"OldOnesGo": {
			reason: "What was refused before is not any more.",
			claim:  `{'metadata':{'generation':3},'status':{'conditions':[` + stalled + conflicted + earlier + `}]}}`,
			hub:    `{'status':{'conditions':[{'type':'Ready'}]}}`,
			want:   `{'conditions':[{'type':'Ready'},` + synced + at + `}]}`,
		},
		"ObservedGeneration": {
			reason: "The definition in the workload cluster knows the field, so it is set.",
			claim:  `{'metadata':{'generation':3},'status':{'observedGeneration':-1}}`,
			hub:    `{'status':{'conditions':[{'type':'Ready'}]}}`,
			want:   `{'observedGeneration':3,'conditions':[{'type':'Ready'},` + synced + at + `}]}`,
		},
		"ObservedGenerationOfTheHub": {
			reason: "One that the API's author has is told in the claim's own count.",
			claim:  `{'metadata':{'generation':3}}`,
			hub:    `{'metadata':{'generation':9},'status':{'observedGeneration':9,'conditions':[{'type':'Ready'}]}}`,
			want:   `{'observedGeneration':3,'conditions':[{'type':'Ready'},` + synced + at + `}]}`,
		},
		"ObservedGenerationOfTheHubIsBehind": {
			reason: "What the hub has not observed is not observed.",
			claim:  `{'metadata':{'generation':3}}`,
			hub:    `{'metadata':{'generation':9},'status':{'observedGeneration':8,'conditions':[{'type':'Ready'}]}}`,
			want:   `{'observedGeneration':2,'conditions':[{'type':'Ready'},` + synced + at + `}]}`,
		},
		"Nulls": {
			reason: "Nulls would never look like what was written.",
			claim:  `{'metadata':{'generation':3}}`,
			hub:    `{'status':{'address':null,'a':{'b':null,'c':[{'d':null}]}}}`,
			want:   `{'a':{'c':[{}]},'conditions':[` + awaiting + synced + at + `}]}`,
		},
		"PrunedField": {
			reason: "A definition that drops observedGeneration does not make us write it again and again.",
			claim:  `{'metadata':{'generation':3},'status':{'conditions':[{'type':'AgentSynced','status':'True','reason':'Synced','message':'The hub holds this claim.',` + earlier + `}]}}`,
			hub:    `{'status':{'conditions':[{'type':'Ready'}]}}`,
			want:   `{'conditions':[{'type':'Ready'},{'type':'AgentSynced','status':'True','reason':'Synced','message':'The hub holds this claim.',` + earlier + `}]}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			claim := parse(t, tc.claim)
			got := statusOf(claim, parse(t, tc.hub), !tc.behind, condition(claim, tc.problem), now)
			want := parse(t, `{'kind':'x','status':`+tc.want+`}`).Object["status"]
			if diff := cmp.Diff(want, any(got)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
			claim.Object["status"] = got
			if again := statusOf(claim, parse(t, tc.hub), !tc.behind, condition(claim, tc.problem), now.Add(time.Hour)); statusDiffers(claim, again) {
				t.Errorf("%s want nothing to write the second time, got %v after %v", tc.reason, again, got)
			}
		})
	}
}

func TestAwaitsFirstStatus(t *testing.T) {
	now := time.Date(2026, 5, 1, 12, 0, 10, 0, time.UTC)
	const created = `'metadata':{'creationTimestamp':'2026-05-01T12:00:`
	for name, tc := range map[string]struct {
		reason     string
		claim, hub string
		want       time.Duration
	}{
		"Young":      {reason: "A new object has no status for a moment.", claim: `{}`, hub: `{` + created + `09Z'}}`, want: time.Second},
		"HasStatus":  {reason: "When the hub has said something there is nothing to wait for.", claim: `{}`, hub: `{` + created + `09Z'},'status':{'a':'b'}}`},
		"Old":        {reason: "We do not wait for ever.", claim: `{}`, hub: `{` + created + `01Z'}}`},
		"ClockAhead": {reason: "A hub whose clock is ahead of ours does not make us wait longer at a time.", claim: `{}`, hub: `{` + created + `59Z'}}`, want: 2 * time.Second},
		"NotFirst": {
			reason: "A claim that has shown our condition before does not wait.",
			claim:  `{'status':{'conditions':[{'type':'AgentSynced'}]}}`, hub: `{` + created + `09Z'}}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			if got := awaitsFirstStatus(parse(t, tc.claim), parse(t, tc.hub), now, 2*time.Second); got != tc.want {
				t.Errorf("%s want %s, got %s", tc.reason, tc.want, got)
			}
		})
	}
}

func TestProblemOf(t *testing.T) {
	resource := schema.GroupResource{Group: "db.acmeco.org", Resource: "dbs"}
	unserved := apierrors.NewGenericServerResponse(404, "PATCH", resource, "db", "404 page not found", 0, true)
	terminating := apierrors.NewForbidden(resource, "db", errors.New("because it is being terminated"))
	terminating.ErrStatus.Details.Causes = append(terminating.ErrStatus.Details.Causes, metav1.StatusCause{Type: "NamespaceTerminating"})
	for name, tc := range map[string]struct {
		reason  string
		err     error
		want    string
		message string
	}{
		"MissingNamespace": {
			reason: "The namespace is named.", err: apierrors.NewNotFound(schema.GroupResource{Resource: "namespaces"}, "bar"),
			want: ReasonTargetNamespaceMissing, message: `The namespace "bar" does not exist in the hub.`,
		},
		"TerminatingNamespace": {reason: "So is one that is going.", err: terminating, want: ReasonTargetNamespaceMissing, message: `The namespace "bar" of the hub is being deleted.`},
		"MissingRight": {
			reason: "The right is named, without the name of our account.",
			err:    apierrors.NewForbidden(resource, "db", errors.New(`User "system:serviceaccount:x:y" cannot create resource "dbs" in API group`)),
			want:   ReasonForbidden, message: `Masthead lacks the right to create dbs.db.acmeco.org in the namespace "bar" of the hub.`,
		},
		"AdmissionRefuses": {
			reason: "A policy's answer is the user's to read.", err: apierrors.NewForbidden(resource, "db", errors.New("too large")),
			want: ReasonRejected, message: `The hub rejected the claim: dbs.db.acmeco.org "db" is forbidden: too large`,
		},
		"Unserved": {reason: "A kind that is not served is told apart from an object that does not exist.", err: unserved, want: ReasonKindNotServed, message: "The hub does not serve dbs.db.acmeco.org now."},
		"Conflict": {reason: "A conflict is retried.", err: apierrors.NewConflict(resource, "db", errors.New("x"))},
		"Busy":     {reason: "A hub that is busy is tried again.", err: apierrors.NewTooManyRequestsError("x")},
		"Network":  {reason: "So is one that does not answer.", err: errors.New("connection refused")},
	} {
		t.Run(name, func(t *testing.T) {
			got := problemOf(tc.err, "create", resource.String(), "bar")
			want := &problem{reason: tc.want, message: tc.message}
			if tc.want == "" {
				want = nil
			}
			if diff := cmp.Diff(want, got, cmp.AllowUnexported(problem{})); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
	if isMissingObject(unserved) || !isMissingObject(apierrors.NewNotFound(resource, "db")) {
		t.Error("want a missing object to be told apart from a missing kind")
	}
}

func TestDefinitionFor(t *testing.T) {
	hub := parse(t, `{'apiVersion':'apiextensions.k8s.io/v1','kind':'CustomResourceDefinition','metadata':{'name':'dbs.acmeco.org','uid':'x',
		'labels':{'a':'b'},'annotations':{'a':'b'},'finalizers':['x'],'ownerReferences':[{'name':'xrd'}],'managedFields':[{'manager':'x'}]},
		'spec':{'group':'acmeco.org','conversion':{'strategy':'Webhook','webhook':{'clientConfig':{'caBundle':'x'}}},
		'versions':[{'name':'v1','served':true,'storage':false},{'name':'v2','served':true,'storage':true}]},'status':{'storedVersions':['v2']}}`)
	want := parse(t, `{'apiVersion':'apiextensions.k8s.io/v1','kind':'CustomResourceDefinition','metadata':{'name':'dbs.acmeco.org',
		'labels':{'masthead.dev/managed-by':'masthead','masthead.dev/hub':'hub-a'}},
		'spec':{'group':'acmeco.org','conversion':{'strategy':'None'},
		'versions':[{'name':'v1','served':false,'storage':false},{'name':'v2','served':true,'storage':true}]}}`)
	owner := hubidentity.Owner{ID: ourHub}
	if diff := cmp.Diff(want.Object, stamped(definitionFor(hub, "v2"), owner).Object); diff != "" {
		t.Errorf("want names, versions and schemas, and nothing of the hub (-want +got):\n%s", diff)
	}

	have := want.DeepCopy()
	have.SetUID("theirs")
	have.SetAnnotations(map[string]string{"example.org/note": "stays"})
	if !sameDefinition(have, want, owner) {
		t.Error("want metadata of others to make no difference")
	}
	set(have, "more", "spec", "added")
	if sameDefinition(have, want, owner) {
		t.Error("want an added field to make a difference")
	}
	fixed := corrected(have, want)
	if !sameDefinition(fixed, want, owner) || fixed.GetUID() != "theirs" || fixed.GetAnnotations()["example.org/note"] != "stays" {
		t.Errorf("want the spec to be put back and nothing else, got %v", fixed.Object)
	}
	have.SetLabels(nil)
	if isOurs(have, owner) || sameDefinition(have, want, owner) {
		t.Error("want a definition without our label not to be ours")
	}
}

func TestVanished(t *testing.T) {
	obj := func(finalizer string, deleting bool) *unstructured.Unstructured {
		u := &unstructured.Unstructured{Object: map[string]any{}}
		u.SetFinalizers([]string{finalizer})
		if deleting {
			now := metav1.Now()
			u.SetDeletionTimestamp(&now)
		}
		return u
	}
	for name, tc := range map[string]struct {
		reason string
		event  kindwatch.Event
		want   bool
	}{
		"Slipped":  {reason: "Our finalizer, and no sign of a deletion that waited for it.", event: kindwatch.Event{Type: kindwatch.Deleted, Object: obj(ourFinalizer, false)}, want: true},
		"Forced":   {reason: "Somebody removed the finalizer by force.", event: kindwatch.Event{Type: kindwatch.Deleted, Object: obj(ourFinalizer, true)}},
		"Relisted": {reason: "Nobody saw how it went.", event: kindwatch.Event{Type: kindwatch.Deleted, Relisted: true, Object: obj(ourFinalizer, false)}},
		"Released": {reason: "It did not have our finalizer.", event: kindwatch.Event{Type: kindwatch.Deleted, Object: obj("other", false)}},
		"Updated":  {reason: "It did not go at all.", event: kindwatch.Event{Type: kindwatch.Updated, Object: obj(ourFinalizer, false)}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := vanished(tc.event, hubidentity.Owner{ID: ourHub}); got != tc.want {
				t.Errorf("%s want %v, got %v", tc.reason, tc.want, got)
			}
		})
	}
}

// intentOf is a markedIntent with the annotations that name the source alone.
func intentOf(claim *unstructured.Unstructured, place hubKey, us source, f form, excluded ...string) *unstructured.Unstructured {
	return markedIntent(claim, place, us.annotations(), f, excluded...)
}
