// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package takeover_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/masthead-dev/masthead/test/fakecloud"
	"github.com/masthead-dev/masthead/test/imported"
)

const (
	histories = 12
	steps     = 40
	region    = "eu-central-1"
)

// history is one life of the managed resources of an import: random steps of the importer, of the provider, of users
// and of the cloud.
type history struct {
	t         *testing.T
	random    *rand.Rand
	cloud     *fakecloud.Cloud
	providers *fakecloud.Providers
	wanted    []*unstructured.Unstructured
	trace     []string
}

// TestCrossplane runs crossplane-runtime's reconciler over a cloud that counts, through random histories with edits
// that would take the cluster over. With the policies the cloud is never asked to change. The same histories without
// the policies are the control.
func TestCrossplane(t *testing.T) {
	found := &table{name: "crossplane", header: []string{"Guard removed", "Still safe?", "Create", "Update", "Delete"}}
	for _, c := range []struct {
		name     string
		enforced bool
		flagOff  bool
		safe     bool
	}{
		{name: "none", enforced: true, safe: true},
		{name: "the provider's flag --enable-management-policies", enforced: true, flagOff: true, safe: true},
		{name: "all policies", safe: false},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := scope{name: fmt.Sprintf("crossplane%d", len(found.rows))}
			if c.enforced {
				s.install(t)
			}
			harm := map[string]int{}
			for seed := range uint64(histories) {
				h := newHistory(t, s, seed, c.flagOff)
				for range steps {
					h.step()
				}
				h.end()
				for _, mutation := range h.cloud.Mutations() {
					harm[mutation.Verb]++
					if c.safe {
						t.Errorf("seed %d: %s after %v", seed, mutation, h.trace)
					}
				}
			}
			if !c.safe && (harm["Create"] == 0 || harm["Update"] == 0 || harm["Delete"] == 0) {
				t.Errorf("without the guard the histories must do every kind of harm, or they prove nothing: %v", harm)
			}
			found.add(c.name, verdict(len(harm) == 0), did(harm["Create"]), did(harm["Update"]), did(harm["Delete"]))
		})
	}
	if !t.Failed() {
		found.check(t)
	}
}

func verdict(safe bool) string {
	if safe {
		return "yes"
	}
	return "**no**"
}

// did is a count without its number, which changes with every step that is added to the histories.
func did(times int) string {
	if times == 0 {
		return "never"
	}
	return "**happens**"
}

func newHistory(t *testing.T, s scope, seed uint64, flagOff bool) *history {
	t.Helper()
	h := &history{t: t, random: rand.New(rand.NewPCG(seed, 1)), cloud: fakecloud.New()}
	name := fmt.Sprintf("%s-%d", s.name, seed)
	h.cloud.AddEKS(fakecloud.EKS{Region: region, Name: name, NodeGroups: []fakecloud.NodeGroup{{Name: name}}})
	for _, kind := range []schema.GroupKind{
		{Group: "eks.aws.upbound.io", Kind: "NodeGroup"},
		{Group: "eks.aws.m.upbound.io", Kind: "NodeGroup"},
		{Group: "eks.aws.upbound.io", Kind: "ClusterAuth"},
		{Group: "ec2.aws.upbound.io", Kind: "VPC"},
	} {
		object := s.object(t, kind, name)
		switch kind.Kind {
		case "VPC":
			object.SetAnnotations(map[string]string{imported.ExternalNameAnnotation: "vpc-" + name})
		default:
			_ = unstructured.SetNestedField(object.Object, name, "spec", "forProvider", "clusterName")
		}
		h.wanted = append(h.wanted, object)
	}
	h.restart(flagOff)
	for _, object := range h.wanted {
		h.apply(object)
	}
	return h
}

func (h *history) restart(flagOff bool) {
	providers, err := h.cloud.Providers(config)
	if err != nil {
		h.t.Fatal(err)
	}
	providers.WithoutManagementPolicies = flagOff
	h.providers = providers
}

// step does one thing to one of the managed resources.
func (h *history) step() {
	wanted := h.wanted[h.random.IntN(len(h.wanted))]
	name := wanted.GetName()
	policies := func(actions ...any) func(*unstructured.Unstructured) {
		return func(o *unstructured.Unstructured) {
			_ = unstructured.SetNestedSlice(o.Object, actions, "spec", "managementPolicies")
		}
	}
	choices := []struct {
		name   string
		weight int
		do     func()
	}{
		{"the provider reconciles", 12, func() { h.reconcile(wanted) }},
		{"the provider restarts", 1, func() { h.restart(h.providers.WithoutManagementPolicies) }},
		{"the importer applies", 4, func() { h.apply(wanted) }},
		{"somebody applies it without policies", 1, func() {
			bare := wanted.DeepCopy()
			unstructured.RemoveNestedField(bare.Object, "spec", "managementPolicies")
			h.apply(bare)
		}},
		{"somebody allows everything", 2, func() { h.edit(wanted, policies("*")) }},
		{"somebody allows to delete", 2, func() { h.edit(wanted, policies("Observe", "Delete")) }},
		{"somebody allows to create", 2, func() { h.edit(wanted, policies("Observe", "Create", "Update", "Delete")) }},
		{"somebody empties the policies", 1, func() { h.edit(wanted, policies()) }},
		{"somebody has it deleted with the object", 1, func() {
			h.edit(wanted, func(o *unstructured.Unstructured) {
				_ = unstructured.SetNestedField(o.Object, "Delete", "spec", "deletionPolicy")
			})
		}},
		{"somebody names another resource", 1, func() {
			h.edit(wanted, func(o *unstructured.Unstructured) {
				o.SetAnnotations(map[string]string{imported.ExternalNameAnnotation: "another-" + name})
			})
		}},
		{"somebody drops the labels", 1, func() { h.edit(wanted, func(o *unstructured.Unstructured) { o.SetLabels(nil) }) }},
		{"somebody pauses it", 1, func() {
			h.edit(wanted, func(o *unstructured.Unstructured) { setAnnotation(o, "crossplane.io/paused", "true") })
		}},
		{"somebody ends the pause", 2, func() {
			h.edit(wanted, func(o *unstructured.Unstructured) { dropAnnotation(o, "crossplane.io/paused") })
		}},
		{"somebody deletes it", 2, func() { h.tolerate(hub.Delete(context.Background(), wanted.DeepCopy())) }},
		{"somebody deletes it in the foreground", 1, func() {
			h.tolerate(hub.Delete(context.Background(), wanted.DeepCopy(), client.PropagationPolicy(metav1.DeletePropagationForeground)))
		}},
		{"the resource goes from the cloud", 1, func() { h.cloud.RemoveNodeGroup(region, name, name) }},
		{"the resource comes back", 1, func() { h.cloud.AddNodeGroup(region, name, fakecloud.NodeGroup{Name: name}) }},
		{"the cloud throttles", 1, func() { h.cloud.Throttle(2) }},
	}
	total := 0
	for _, choice := range choices {
		total += choice.weight
	}
	drawn := h.random.IntN(total)
	for _, choice := range choices {
		if drawn -= choice.weight; drawn < 0 {
			h.trace = append(h.trace, choice.name+" ("+wanted.GetKind()+")")
			choice.do()
			return
		}
	}
}

// apply is what the importer does: server-side apply, with force.
func (h *history) apply(object *unstructured.Unstructured) {
	object = object.DeepCopy()
	h.tolerate(hub.Apply(context.Background(), client.ApplyConfigurationFromUnstructured(object), client.FieldOwner("masthead-importer"), client.ForceOwnership))
}

func (h *history) edit(wanted *unstructured.Unstructured, change func(*unstructured.Unstructured)) {
	object := wanted.DeepCopy()
	if err := hub.Get(context.Background(), client.ObjectKeyFromObject(wanted), object); err != nil {
		h.tolerate(err)
		return
	}
	change(object)
	h.tolerate(hub.Update(context.Background(), object))
}

// tolerate accepts that the API server refuses an edit, or that there is nothing to edit.
func (h *history) tolerate(err error) {
	if err != nil && !apierrors.IsForbidden(err) && !apierrors.IsInvalid(err) && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		h.t.Fatalf("%v: %v", h.trace, err)
	}
}

// reconcile has the provider look at a managed resource. Its errors are the provider's to report.
func (h *history) reconcile(object *unstructured.Unstructured) {
	reconciler, err := h.providers.Reconciler(context.Background(), object.GroupVersionKind())
	if err != nil {
		h.t.Fatal(err)
	}
	_, _ = reconciler.Reconcile(context.Background(), reconcile.Request{NamespacedName: client.ObjectKeyFromObject(object)})
}

// end removes what is left, and lets the provider see each step.
func (h *history) end() {
	for _, object := range h.wanted {
		h.reconcile(object)
		h.tolerate(hub.Delete(context.Background(), object.DeepCopy()))
		h.reconcile(object)
	}
	mutations := len(h.cloud.Mutations())
	for _, object := range h.wanted {
		live := object.DeepCopy()
		if err := hub.Get(context.Background(), client.ObjectKeyFromObject(object), live); err != nil {
			continue
		}
		live.SetFinalizers(nil)
		h.tolerate(hub.Update(context.Background(), live))
	}
	if mutations != len(h.cloud.Mutations()) {
		h.t.Fatal("the clean-up of the test changed the cloud")
	}
}

func setAnnotation(object *unstructured.Unstructured, key, value string) {
	annotations := object.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[key] = value
	object.SetAnnotations(annotations)
}
