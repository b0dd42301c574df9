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

	"github.com/masthead-dev/masthead/internal/test/fakecloud"
	"github.com/masthead-dev/masthead/internal/test/imported"
	"github.com/masthead-dev/masthead/internal/test/providercrds"
)

const (
	histories = 12
	steps     = 40

	region        = "eu-central-1"
	resourceGroup = "shop-group"
	location      = "europe-west3"
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
	// name is the name of the clusters and of their pools, in every cloud.
	name string
}

// Rules of the policy about managed resources, by their messages.
const (
	rulePolicies       = "An imported managed resource must have the managementPolicies"
	ruleDeletionPolicy = "must have the deletionPolicy"
	ruleForProvider    = "The forProvider of an imported"
	ruleInitProvider   = "must not have an initProvider"
	ruleExternalName   = "external-name of an imported managed resource cannot be changed"
	ruleProviderConfig = "The providerConfigRef of an imported"
	ruleLabels         = "The labels of an import"
)

// TestCrossplane runs crossplane-runtime's reconciler against a cloud that counts attempts to change it, through random
// histories with edits that would take the cluster over. With the policies, the cloud never gets such a request. The
// same histories without one of their rules, and without all of them, are the control: they show which rules hold by
// themselves, and which exist in case another one is removed.
func TestCrossplane(t *testing.T) { //nolint:tparallel // Its rows fill one table, in order.
	t.Parallel() // The tests that run at the same time have their own fleets.
	found := &table{name: "crossplane", header: []string{"Guard removed", "Still safe?", "Create", "Update", "Delete"}}
	for _, c := range []struct {
		name     string
		enforced bool
		flagOff  bool
		// without are the rules that are removed.
		without []string
		safe    bool
	}{
		{name: "none", enforced: true, safe: true},
		{name: "the provider's flag --enable-management-policies", enforced: true, flagOff: true, safe: true},
		{name: "rule: managementPolicies", enforced: true, without: []string{rulePolicies}},
		{name: "rule: deletionPolicy", enforced: true, without: []string{ruleDeletionPolicy}, safe: true},
		{name: "rule: only identifiers in forProvider", enforced: true, without: []string{ruleForProvider}, safe: true},
		{name: "rule: no initProvider", enforced: true, without: []string{ruleInitProvider}, safe: true},
		{name: "rule: external-name is kept", enforced: true, without: []string{ruleExternalName}, safe: true},
		{name: "rule: providerConfigRef is kept", enforced: true, without: []string{ruleProviderConfig}, safe: true},
		{name: "rule: labels are kept", enforced: true, without: []string{ruleLabels}},
		{
			name: "all rules but managementPolicies and labels", enforced: true, safe: true,
			without: []string{ruleDeletionPolicy, ruleForProvider, ruleInitProvider, ruleExternalName, ruleProviderConfig},
		},
		{name: "all policies"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := scope{name: fmt.Sprintf("crossplane%d", len(found.rows))}
			if c.enforced {
				s.install(t, c.without...)
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
			every := harm["Create"] > 0 && harm["Update"] > 0 && harm["Delete"] > 0
			if !c.safe && (len(harm) == 0 || !c.enforced && !every) {
				t.Errorf("without the guard the histories must do harm, without all of them every kind of it, or they prove nothing: %v", harm)
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

// did returns a count without its number, which changes with every step that is added to the histories.
func did(times int) string {
	if times == 0 {
		return "never"
	}
	return "**happens**"
}

func newHistory(t *testing.T, s scope, seed uint64, flagOff bool) *history {
	t.Helper()
	h := &history{t: t, random: rand.New(rand.NewPCG(seed, 1)), cloud: fakecloud.New(), name: fmt.Sprintf("%s-%d", s.name, seed)}
	h.cloud.AddEKS(fakecloud.EKS{Region: region, Name: h.name, NodeGroups: []fakecloud.NodeGroup{{Name: h.name}}, Fargate: []string{h.name}})
	h.cloud.AddAKS(fakecloud.AKS{ResourceGroup: resourceGroup, Name: h.name, Location: "westeurope", NodePools: []fakecloud.AKSNodePool{{Name: h.name}}})
	h.cloud.AddGKE(fakecloud.GKE{Location: location, Name: h.name, NodePools: []fakecloud.GKENodePool{{Name: h.name}}})
	for _, kind := range kindsOfHistory(seed) {
		h.wanted = append(h.wanted, h.managedResource(s, kind))
	}
	h.restart(flagOff)
	for _, object := range h.wanted {
		h.apply(object)
	}
	return h
}

// kindsOfHistory returns some of the kinds of managed resources: all histories together have each kind of each cloud,
// in both of its groups, several times. Node groups, which are removed and added again, are in every history.
func kindsOfHistory(seed uint64) []schema.GroupKind {
	const each = 4
	all := append(providercrds.ManagedResources(), providercrds.ModernManagedResources()...)
	kinds := []schema.GroupKind{{Group: []string{"eks.aws.upbound.io", "eks.aws.m.upbound.io"}[seed%2], Kind: "NodeGroup"}}
	for i := range uint64(each) {
		if kind := all[(seed*each+i)%uint64(len(all))]; kind != kinds[0] {
			kinds = append(kinds, kind)
		}
	}
	return kinds
}

// TestHistoriesHaveEveryKind: the table says nothing about a kind that is in no history.
func TestHistoriesHaveEveryKind(t *testing.T) {
	seen := map[schema.GroupKind]bool{}
	for seed := range uint64(histories) {
		for _, kind := range kindsOfHistory(seed) {
			seen[kind] = true
		}
	}
	for _, kind := range append(providercrds.ManagedResources(), providercrds.ModernManagedResources()...) {
		if !seen[kind] {
			t.Errorf("%s is in no history", kind)
		}
	}
}

// managedResource returns a managed resource as an import creates it for a resource in the cloud.
func (h *history) managedResource(s scope, kind schema.GroupKind) *unstructured.Unstructured {
	h.t.Helper()
	object := s.object(h.t, kind, h.name)
	externalName, identifiers := h.name, map[string]string{}
	switch kind.Kind {
	case "NodeGroup", "FargateProfile", "ClusterAuth":
		identifiers["clusterName"] = h.name
	case "VPC":
		externalName = "vpc-" + h.name
	case "Subnet":
		externalName = "subnet-" + h.name + "-public"
	case "RouteTable":
		externalName = "rtb-" + h.name + "-public"
	case "KubernetesCluster":
		identifiers["resourceGroupName"], identifiers["location"] = resourceGroup, "westeurope"
	case "KubernetesClusterNodePool":
		identifiers["kubernetesClusterId"] = fakecloud.AKSClusterID(resourceGroup, h.name)
	case "NodePool":
		identifiers["location"], identifiers["cluster"] = location, h.name
	}
	if kind.Kind != "ClusterAuth" {
		object.SetAnnotations(map[string]string{imported.ExternalNameAnnotation: externalName})
	}
	for field, value := range identifiers {
		_ = unstructured.SetNestedField(object.Object, value, "spec", "forProvider", field)
	}
	return object
}

func (h *history) restart(flagOff bool) {
	providers, err := h.cloud.Providers(config)
	if err != nil {
		h.t.Fatal(err)
	}
	providers.WithoutManagementPolicies = flagOff
	h.providers = providers
}

// step applies one step to one of the managed resources.
func (h *history) step() {
	wanted := h.wanted[h.random.IntN(len(h.wanted))]
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
		{"a user applies it without policies", 1, func() {
			bare := wanted.DeepCopy()
			unstructured.RemoveNestedField(bare.Object, "spec", "managementPolicies")
			h.apply(bare)
		}},
		{"a user allows everything", 2, func() { h.edit(wanted, policies("*")) }},
		{"a user allows to delete", 2, func() { h.edit(wanted, policies("Observe", "Delete")) }},
		{"a user allows to create", 2, func() { h.edit(wanted, policies("Observe", "Create", "Update", "Delete")) }},
		{"a user empties the policies", 1, func() { h.edit(wanted, policies()) }},
		{"a user has it deleted with the object", 1, func() {
			h.edit(wanted, func(o *unstructured.Unstructured) {
				_ = unstructured.SetNestedField(o.Object, "Delete", "spec", "deletionPolicy")
			})
		}},
		{"a user wants a value", 1, func() {
			h.edit(wanted, func(o *unstructured.Unstructured) {
				_ = unstructured.SetNestedField(o.Object, "theirs", "spec", "forProvider", "tags", "owner")
			})
		}},
		{"a user wants a value at first", 1, func() {
			h.edit(wanted, func(o *unstructured.Unstructured) {
				_ = unstructured.SetNestedField(o.Object, "theirs", "spec", "initProvider", "tags", "owner")
			})
		}},
		{"a user takes another configuration", 1, func() {
			h.edit(wanted, func(o *unstructured.Unstructured) {
				_ = unstructured.SetNestedField(o.Object, "theirs", "spec", "providerConfigRef", "name")
			})
		}},
		{"a user names another resource", 1, func() {
			h.edit(wanted, func(o *unstructured.Unstructured) {
				o.SetAnnotations(map[string]string{imported.ExternalNameAnnotation: "another-" + h.name})
			})
		}},
		{"a user drops the labels", 1, func() { h.edit(wanted, func(o *unstructured.Unstructured) { o.SetLabels(nil) }) }},
		{"a user pauses it", 1, func() {
			h.edit(wanted, func(o *unstructured.Unstructured) { setAnnotation(o, "crossplane.io/paused", "true") })
		}},
		{"a user ends the pause", 2, func() {
			h.edit(wanted, func(o *unstructured.Unstructured) { dropAnnotation(o, "crossplane.io/paused") })
		}},
		{"a user deletes it", 2, func() { h.tolerate(hub.Delete(context.Background(), wanted.DeepCopy())) }},
		{"a user deletes it in the foreground", 1, func() {
			h.tolerate(hub.Delete(context.Background(), wanted.DeepCopy(), client.PropagationPolicy(metav1.DeletePropagationForeground)))
		}},
		{"the pools go from the cloud", 1, func() {
			h.cloud.RemoveNodeGroup(region, h.name, h.name)
			h.cloud.RemoveAKSNodePool(fakecloud.AKSClusterID(resourceGroup, h.name), h.name)
			h.cloud.RemoveGKENodePool("", location, h.name, h.name)
		}},
		{"the pools come back", 1, func() {
			h.cloud.AddNodeGroup(region, h.name, fakecloud.NodeGroup{Name: h.name})
			h.cloud.AddAKSNodePool(fakecloud.AKSClusterID(resourceGroup, h.name), fakecloud.AKSNodePool{Name: h.name})
			h.cloud.AddGKENodePool("", location, h.name, fakecloud.GKENodePool{Name: h.name})
		}},
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

// apply does what the importer does: server-side apply, with force.
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

// reconcile makes the provider reconcile a managed resource. It ignores errors, because the provider reports them.
func (h *history) reconcile(object *unstructured.Unstructured) {
	reconciler, err := h.providers.Reconciler(context.Background(), object.GroupVersionKind())
	if err != nil {
		h.t.Fatal(err)
	}
	_, _ = reconciler.Reconcile(context.Background(), reconcile.Request{NamespacedName: client.ObjectKeyFromObject(object)})
}

// end removes the remaining objects, and lets the provider reconcile before and after each deletion.
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
