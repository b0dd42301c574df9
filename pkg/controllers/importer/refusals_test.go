// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package importer

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	clocktesting "k8s.io/utils/clock/testing"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/controllers/importer/workload"
	"github.com/masthead-dev/masthead/pkg/reflection"
)

// denied is a webhook's refusal, in the words of an API server.
func denied(code int32, words string) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: code, Reason: metav1.StatusReasonForbidden, Message: `admission webhook "example.org" denied the request: ` + words,
	}}
}

// hasField refuses the objects of a kind that have a field.
func hasField(kind, field string, refusal error) func(want, there *unstructured.Unstructured) error {
	return func(want, _ *unstructured.Unstructured) error {
		if _, found, _ := unstructured.NestedFieldNoCopy(want.Object, "spec", field); want.GetKind() == kind && found {
			return refusal
		}
		return nil
	}
}

// lossyFields are the lossy fields whose reason has the words.
func (h *hubOfOneImport) lossyFields(words string) []string {
	h.t.Helper()
	var fields []string
	for _, l := range h.get().Status.Lossy {
		if strings.Contains(l.Reason, words) {
			fields = append(fields, l.Kind+" "+l.Field)
		}
	}
	return slices.Compact(slices.Sorted(slices.Values(fields)))
}

// TestFieldThatTheProviderLacksIsLossy: the status says once what the installed provider does not observe.
func TestFieldThatTheProviderLacksIsLossy(t *testing.T) {
	t.Parallel()
	for _, missing := range []bool{false, true} {
		h, want := newHub(t, anImport()), []string(nil)
		if missing {
			h.changeCRD(reflection.EKSNodeGroup, "status", func(status *apiextensionsv1.JSONSchemaProps) {
				delete(status.Properties["atProvider"].Properties, "diskSize")
			})
			want = []string{"ClusterImport NodeGroup.diskSize"}
		}
		h.settle()
		h.want(fleetv1alpha1.ConditionReady, fleetv1alpha1.ReasonImported)
		if got := h.lossyFields("installed provider"); !slices.Equal(got, want) {
			t.Errorf("want %v lossy, got %v", want, h.get().Status.Lossy)
		}
	}
}

// TestRefusedFieldsCostNoImport: a webhook refuses a part of what was observed. The rest is imported, the status says
// what is missing, an import at rest neither writes nor tries to, and when the webhook is gone, everything is there by
// the resync.
func TestRefusedFieldsCostNoImport(t *testing.T) {
	const words = "not on Sundays"
	green := func(want, _ *unstructured.Unstructured) error {
		if want.GetKind() == "AWSManagedMachinePool" && strings.Contains(want.GetName(), "green") {
			return denied(403, words)
		}
		return nil
	}
	cases := map[string]struct {
		reason  string
		webhook func(want, there *unstructured.Unstructured) error
		lossy   []string
		missing string
	}{
		"Named": {
			"The other fields are admitted.", hasField("AWSManagedControlPlane", "network", denied(422, "spec.network: Forbidden: "+words)),
			[]string{"AWSManagedControlPlane spec.network"}, "",
		},
		"Unnamed": {
			"All that is not needed is left out.", hasField("AWSManagedControlPlane", "network", denied(403, words)),
			[]string{"AWSManagedControlPlane spec.network", "AWSManagedControlPlane spec.version"}, "",
		},
		"Panic": {
			"A webhook that panics answers so, as long as the field is there.",
			hasField("AWSManagedControlPlane", "network", denied(500, "panic: "+words)),
			[]string{"AWSManagedControlPlane spec.network", "AWSManagedControlPlane spec.version"}, "",
		},
		"OneAtATime": {
			"Some webhooks name one field and stop.",
			func(want, there *unstructured.Unstructured) error {
				if err := hasField("AWSManagedControlPlane", "network", denied(422, "spec.network: "+words))(want, there); err != nil {
					return err
				}
				return hasField("AWSManagedControlPlane", "version", denied(422, "spec.version: "+words))(want, there)
			},
			[]string{"AWSManagedControlPlane spec.network", "AWSManagedControlPlane spec.version"}, "",
		},
		"Cluster": {
			"So it is for the objects of Cluster API core.", hasField("MachinePool", "replicas", denied(403, "spec.replicas: "+words)),
			[]string{"MachinePool spec.replicas"}, "",
		},
		"PoolField": {
			"So it is for pools.", hasField("AWSManagedMachinePool", "instanceType", denied(403, "spec.instanceType: "+words)),
			[]string{"AWSManagedMachinePool spec.instanceType"}, "",
		},
		"Pool": {"Nothing depends on a pool.", green, []string{"AWSManagedMachinePool metadata.name"}, "green"},
		"Policy": {
			"The reason of a policy's refusal is Invalid.",
			hasField("AWSManagedControlPlane", "network", apierrors.NewInvalid(schema.GroupKind{}, "shop",
				field.ErrorList{field.Forbidden(field.NewPath("spec", "network"), words)})),
			[]string{"AWSManagedControlPlane spec.network"}, "",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			imp := anImport()
			h := newHub(t, imp)
			clock, _ := h.r.clock.(*clocktesting.FakeClock)
			h.hub.webhook = tc.webhook
			h.settle()
			h.want(fleetv1alpha1.ConditionReady, fleetv1alpha1.ReasonImported)
			h.nothingCanAct()
			if got := h.lossyFields(words); !slices.Equal(got, tc.lossy) {
				t.Errorf("%s want %v lossy, got %v", tc.reason, tc.lossy, h.get().Status.Lossy)
			}
			for _, pool := range []string{"blue", "green"} {
				there := strings.Contains(strings.Join(h.made(), " "), "Pool/shop-"+pool)
				if there == (pool == tc.missing) {
					t.Errorf("%s the pool %s is there: %v", tc.reason, pool, there)
				}
			}
			version := h.get().ResourceVersion
			for _, wait := range []time.Duration{workload.Retry, 2 * workload.Retry, 4 * workload.Retry, 8 * workload.Retry, workload.Resync, workload.Resync} {
				before, writes := h.hub.refusals, len(h.writes)
				for range 3 {
					h.settle()
				}
				if h.hub.refusals != before || len(h.writes) != writes {
					t.Fatalf("%d attempts, and the writes %v, before the next one is due in %s", h.hub.refusals-before, h.writes[writes:], wait)
				}
				clock.Step(wait)
				if h.settle(); h.hub.refusals == before || len(h.writes) != writes {
					t.Fatalf("no attempt after %s, or the writes %v", wait, h.writes[writes:])
				}
			}
			if now := h.get().ResourceVersion; now != version {
				t.Errorf("the status changes at rest, from version %s to %s", version, now)
			}
			h.hub.webhook = nil
			clock.Step(workload.Resync)
			h.settle()
			if got := h.lossyFields(words); len(got) > 0 || len(h.r.outcomes.known) > 0 || !strings.Contains(strings.Join(h.made(), " "), "MachinePool/shop-green") {
				t.Errorf("want everything there, got %v lossy, remembered %v", got, h.r.outcomes.known)
			}
			h.hub.webhook = tc.webhook
			h.unimport()
			h.isGone()
			if len(h.r.outcomes.known) > 0 {
				t.Errorf("something is remembered of an import that is gone: %v", h.r.outcomes.known)
			}
		})
	}
}

// TestRefusedUpdates: a provider's webhook makes fields immutable that the customer changed. A control plane keeps its
// value, and nothing else is lost. A pool is recreated where that helps.
func TestRefusedUpdates(t *testing.T) {
	immutable := func(kind, field, words string) func(want, there *unstructured.Unstructured) error {
		return func(want, there *unstructured.Unstructured) error {
			if want.GetKind() != kind || there == nil {
				return nil
			}
			is, _, _ := unstructured.NestedFieldNoCopy(there.Object, "spec", field)
			now, _, _ := unstructured.NestedFieldNoCopy(want.Object, "spec", field)
			if is == now {
				return nil
			}
			return denied(422, words)
		}
	}
	frozen := func(want, there *unstructured.Unstructured) error {
		if there == nil || want.GetKind() != "AWSManagedControlPlane" {
			return nil
		}
		return denied(403, "no")
	}
	always := func(want, _ *unstructured.Unstructured) error {
		if want.GetKind() == "AWSManagedMachinePool" && want.Object["spec"].(map[string]any)["instanceType"] == "m7.large" {
			return denied(403, "no")
		}
		return nil
	}
	for name, tc := range map[string]struct {
		reason  string
		webhook func(want, there *unstructured.Unstructured) error
		// the version and the instance type that are shown after both have changed.
		version, instanceType string
		recreated             bool
	}{
		"Admitted":      {"Both change.", nil, "1.32", "m7.large", false},
		"Named":         {"The old version is kept.", immutable("AWSManagedControlPlane", "version", "spec.version: field is immutable"), "1.31", "m7.large", false},
		"Unnamed":       {"All that is not needed is kept.", immutable("AWSManagedControlPlane", "version", "no"), "1.31", "m7.large", false},
		"EveryUpdate":   {"The object stays as it is.", frozen, "1.31", "m7.large", false},
		"Pool":          {"Another one is admitted.", immutable("AWSManagedMachinePool", "instanceType", "spec.instanceType: field is immutable"), "1.32", "m7.large", true},
		"PoolUnnamed":   {"Policies do not say what is wrong.", immutable("AWSManagedMachinePool", "instanceType", "no"), "1.32", "m7.large", true},
		"PoolForbidden": {"Another one would be refused as well: nothing is deleted.", always, "1.32", "m5.large", false},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHub(t, anImport())
			h.settle()
			h.hub.webhook = tc.webhook
			for _, m := range h.list(observedCluster) {
				h.change(&m, "1.32", "status", "atProvider", "version")
			}
			for _, m := range h.list(reflection.EKSNodeGroup.Namespaced().WithVersion("v1beta1")) {
				h.change(&m, []any{"m7.large"}, "status", "atProvider", "instanceTypes")
			}
			writes := len(h.writes)
			h.settle()
			h.want(fleetv1alpha1.ConditionReady, fleetv1alpha1.ReasonImported)
			h.nothingCanAct()
			for kind, want := range map[string]string{"AWSManagedControlPlane version": tc.version, "AWSManagedMachinePool instanceType": tc.instanceType} {
				kind, field, _ := strings.Cut(kind, " ")
				for _, gvk := range kindsOfEKS() {
					for _, o := range h.list(gvk) {
						if got, _, _ := unstructured.NestedString(o.Object, "spec", field); gvk.Kind == kind && got != want {
							t.Errorf("%s %s of %s: want %s, got %s", tc.reason, field, o.GetName(), want, got)
						}
					}
				}
			}
			deleted := slices.Contains(h.writes[writes:], "delete AWSManagedMachinePool")
			if deleted != tc.recreated || slices.Contains(h.writes[writes:], "delete AWSManagedControlPlane") {
				t.Errorf("%s recreated %v: %v", tc.reason, deleted, h.writes[writes:])
			}
			if stale := tc.version != "1.32" || tc.instanceType != "m7.large"; stale != (len(h.lossyFields(`"example.org" denied`)) > 0) {
				t.Errorf("%s lossy: %v", tc.reason, h.get().Status.Lossy)
			}
		})
	}
}

// TestRefusedObjectStopsAnImport: without them there is no import, or nothing that keeps a provider from acting.
func TestRefusedObjectStopsAnImport(t *testing.T) {
	for _, kind := range []string{"AWSClusterStaticIdentity", "AWSManagedCluster", "AWSManagedControlPlane", "Cluster"} {
		t.Run(kind, func(t *testing.T) {
			h := newHub(t, anImport())
			h.hub.webhook = func(want, _ *unstructured.Unstructured) error {
				if want.GetKind() == kind && strings.HasSuffix(want.GroupVersionKind().Group, "cluster.x-k8s.io") {
					return denied(403, strings.Repeat("x", 5000)+"\n\x00")
				}
				return nil
			}
			h.settle()
			h.want(fleetv1alpha1.ConditionReady, fleetv1alpha1.ReasonReflectionRefused)
			for _, c := range h.get().Status.Conditions {
				if len(c.Message) > 600 || strings.ContainsAny(c.Message, "\n\x00") {
					t.Errorf("the message of %s is not bounded and clean: %q", c.Type, c.Message)
				}
			}
		})
	}
}

// TestWhatIsNoRefusal: the import waits for these, or its administrator does.
func TestWhatIsNoRefusal(t *testing.T) {
	gr := schema.GroupResource{Resource: "clusters"}
	for name, tc := range map[string]struct {
		err  error
		want bool
	}{
		"Right":        {apierrors.NewForbidden(gr, "shop", errors.New(`User "x" cannot create resource "clusters"`)), false},
		"Quota":        {apierrors.NewForbidden(gr, "shop", errors.New("exceeded quota: few")), false},
		"Unreachable":  {apierrors.NewInternalError(errors.New(`failed calling webhook "example.org": connection refused`)), false},
		"Conflict":     {apierrors.NewConflict(gr, "shop", errors.New("it changed")), false},
		"NoAnswer":     {errors.New("denied the request"), false},
		"Validation":   {apierrors.NewInvalid(schema.GroupKind{}, "shop", nil), true},
		"Webhook":      {denied(403, "no"), true},
		"BadRequest":   {denied(400, "no"), true},
		"PolicyDenies": {apierrors.NewForbidden(gr, "shop", errors.New(`ValidatingAdmissionPolicy 'x' with binding 'x' denied request: no`)), true},
	} {
		if got := isRefused(tc.err); got != tc.want {
			t.Errorf("%s: want %v, got %v", name, tc.want, got)
		}
	}
}

// TestOverwrittenFieldsAreNotFoughtOver: a defaulting webhook, or another client, sets a field of a reflection on and
// on. It is lossy, and written again later each time.
func TestOverwrittenFieldsAreNotFoughtOver(t *testing.T) {
	for _, webhook := range []bool{true, false} {
		h := newHub(t, anImport())
		h.settle()
		clock, _ := h.r.clock.(*clocktesting.FakeClock)
		overwrite := func() {
			for _, gvk := range kindsOfEKS() {
				for _, o := range h.list(gvk) {
					if gvk.Kind == "AWSManagedControlPlane" {
						h.change(&o, "theirs", "spec", "version")
					}
				}
			}
		}
		if webhook {
			h.afterApply = overwrite
		}
		applies := func() int {
			n := 0
			for _, w := range h.writes {
				if w == "apply AWSManagedControlPlane" {
					n++
				}
			}
			return n
		}
		before := applies()
		for range 10 { // At once.
			overwrite()
			h.settle()
		}
		if n := applies() - before; n != 1 {
			t.Errorf("webhook %v: want one attempt, got %d", webhook, n)
		}
		if got := h.lossyFields("changes the field"); !slices.Equal(got, []string{"AWSManagedControlPlane spec.version"}) {
			t.Errorf("webhook %v: want the version lossy, got %v", webhook, h.get().Status.Lossy)
		}
		for range 60 { // Over an hour.
			clock.Step(time.Minute)
			overwrite()
			h.settle()
		}
		if n := applies() - before; n < 10 || n > 20 {
			t.Errorf("webhook %v: got %d attempts in an hour", webhook, n)
		}
		h.afterApply = nil
		clock.Step(workload.Resync)
		h.settle()
		clock.Step(workload.Resync)
		h.settle()
		if got := h.lossyFields("changes the field"); len(got) > 0 || len(h.r.outcomes.known) > 0 {
			t.Errorf("webhook %v: want nothing lossy any more, got %v, remembered %v", webhook, got, h.r.outcomes.known)
		}
	}
}

// TestGuardsAreRestoredAtOnce: however often a client takes a guard from a reflection, it is not left without.
func TestGuardsAreRestoredAtOnce(t *testing.T) {
	h := newHub(t, anImport())
	h.settle()
	for range 5 {
		for _, o := range h.list(kindsOfEKS()[1]) {
			left := o.GetAnnotations()
			delete(left, clusterv1.PausedAnnotation)
			o.SetAnnotations(left)
			if err := h.c.Update(t.Context(), &o); err != nil {
				t.Fatal(err)
			}
		}
		h.settle()
		h.nothingCanAct()
	}
}
