// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/internal/test/testenv"
	"github.com/masthead-dev/masthead/test/harness"
	"github.com/masthead-dev/masthead/test/localfleet"
)

// secondHub is another hub with its own manager: an API server with what Masthead needs, which offers what the first
// hub offers. No Crossplane runs in it.
type secondHub struct {
	client.Client
	identity string
	manager  *harness.Manager
}

func startSecondHub(ctx context.Context) *secondHub {
	GinkgoHelper()
	profiles, err := testenv.ModuleCRDs(ctx, "sigs.k8s.io/cluster-inventory-api", "config/crd/bases")
	Expect(err).NotTo(HaveOccurred())
	clusterAPI, err := testenv.ClusterAPICRDs(ctx)
	Expect(err).NotTo(HaveOccurred())
	env, err := testenv.New(testenv.CRDs(), filepath.Join(profiles, "multicluster.x-k8s.io_clusterprofiles.yaml"),
		filepath.Join(clusterAPI, "cluster.x-k8s.io_clusters.yaml"))
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func() { Expect(env.Stop()).To(Succeed()) })
	config, err := testenv.Start(env)
	Expect(err).NotTo(HaveOccurred())

	scheme := runtime.NewScheme()
	Expect(clientgoscheme.AddToScheme(scheme)).To(Succeed())
	Expect(fleetv1alpha1.AddToScheme(scheme)).To(Succeed())
	h := &secondHub{}
	h.Client, err = client.New(config, client.Options{Scheme: scheme})
	Expect(err).NotTo(HaveOccurred())
	system := &corev1.Namespace{}
	Expect(h.Get(ctx, client.ObjectKey{Name: metav1.NamespaceSystem}, system)).To(Succeed())
	h.identity = string(system.UID)
	h.offerWhatTheFirstDoes(ctx)

	user, err := env.AddUser(envtest.User{Name: "masthead", Groups: []string{"system:masters"}}, nil)
	Expect(err).NotTo(HaveOccurred())
	data, err := user.KubeConfig()
	Expect(err).NotTo(HaveOccurred())
	kubeconfig := filepath.Join(fleet.Dir(), "second-hub.kubeconfig")
	Expect(os.WriteFile(kubeconfig, data, 0o600)).To(Succeed())
	h.manager, err = harness.LaunchManager(local, kubeconfig, managerFlags...)
	Expect(err).NotTo(HaveOccurred())
	launched = append(launched, h.manager)
	Expect(h.manager.WaitReady(ctx)).To(Succeed())
	return h
}

// offerWhatTheFirstDoes copies the claim kind of the first hub, as Crossplane has created it there, and its class.
func (h *secondHub) offerWhatTheFirstDoes(ctx context.Context) {
	GinkgoHelper()
	config, err := fleet.Config(localfleet.HubName)
	Expect(err).NotTo(HaveOccurred())
	first, err := client.New(config, client.Options{})
	Expect(err).NotTo(HaveOccurred())
	definition := schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"}
	xrd := schema.GroupVersionKind{Group: "apiextensions.crossplane.io", Version: "v1", Kind: "CompositeResourceDefinition"}
	class := fleetv1alpha1.GroupVersion.WithKind("EnrollmentClass")

	Expect(h.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "bar"}})).To(Succeed())
	var xrdName string
	published := &unstructured.UnstructuredList{}
	published.SetGroupVersionKind(xrd)
	Expect(first.List(ctx, published)).To(Succeed())
	for _, x := range published.Items {
		if plural, _, _ := unstructured.NestedString(x.Object, "spec", "claimNames", "plural"); plural == requirements {
			xrdName = x.GetName()
		}
	}
	for _, o := range []struct {
		kind schema.GroupVersionKind
		name string
	}{
		{definition, "compositeresourcedefinitions.apiextensions.crossplane.io"},
		{definition, requirements + ".database.acmeco.org"},
		{xrd, xrdName},
		{class, "default"},
	} {
		have := &unstructured.Unstructured{}
		have.SetGroupVersionKind(o.kind)
		Expect(first.Get(ctx, client.ObjectKey{Name: o.name}, have)).To(Succeed(), "%s %q of the first hub", o.kind.Kind, o.name)
		made := &unstructured.Unstructured{Object: map[string]any{"spec": have.Object["spec"]}}
		made.SetGroupVersionKind(o.kind)
		made.SetName(o.name)
		// A kind is served a moment after its definition is created.
		Eventually(func() error { return h.Create(ctx, made.DeepCopy()) }).WithContext(ctx).Should(Succeed())
		if o.kind != xrd {
			continue
		}
		Expect(h.Get(ctx, client.ObjectKey{Name: o.name}, made)).To(Succeed())
		made.Object["status"] = have.Object["status"]
		Expect(h.Status().Update(ctx, made)).To(Succeed())
	}
	// The definition that Crossplane creates for claims names the XRD that they belong to.
	crd, owner := &unstructured.Unstructured{}, &unstructured.Unstructured{}
	crd.SetGroupVersionKind(definition)
	owner.SetGroupVersionKind(xrd)
	Expect(h.Get(ctx, client.ObjectKey{Name: requirements + ".database.acmeco.org"}, crd)).To(Succeed())
	Expect(h.Get(ctx, client.ObjectKey{Name: xrdName}, owner)).To(Succeed())
	crd.SetOwnerReferences([]metav1.OwnerReference{*metav1.NewControllerRef(owner, xrd)})
	Expect(h.Update(ctx, crd)).To(Succeed())
}

// enrol enrols a workload cluster with a Secret, and returns a function that un-enrols it.
func (h *secondHub) enrol(ctx context.Context, name string) (unenrol func(context.Context)) {
	GinkgoHelper()
	kubeconfig, err := local.NewKubeconfig(ctx, name)
	Expect(err).NotTo(HaveOccurred())
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: metav1.NamespaceDefault, Name: name, Labels: map[string]string{fleetv1alpha1.EnrollLabel: fleetv1alpha1.EnrollLabelTrue},
		},
		Data: map[string][]byte{"kubeconfig": kubeconfig},
	}
	Expect(h.Create(ctx, secret)).To(Succeed())
	return func(ctx context.Context) {
		base := secret.DeepCopy()
		delete(secret.Labels, fleetv1alpha1.EnrollLabel)
		Expect(h.Patch(ctx, secret, client.MergeFrom(base))).To(Succeed())
		Eventually(func() string { return h.connected(ctx, name) }).WithContext(ctx).Should(BeEmpty())
	}
}

// connected is the condition Connected of a cluster: its status, reason and message, or "" if there is no
// ClusterProfile.
func (h *secondHub) connected(ctx context.Context, name string) string {
	profile := &unstructured.Unstructured{}
	profile.SetGroupVersionKind(schema.GroupVersionKind{Group: "multicluster.x-k8s.io", Version: "v1alpha1", Kind: "ClusterProfile"})
	if h.Get(ctx, client.ObjectKey{Namespace: metav1.NamespaceDefault, Name: "kubeconfig-" + name}, profile) != nil {
		return ""
	}
	conditions, _, _ := unstructured.NestedSlice(profile.Object, "status", "conditions")
	for _, c := range conditions {
		if c, ok := c.(map[string]any); ok && c["type"] == "Connected" {
			return fmt.Sprintf("%s/%s: %s", c["status"], c["reason"], c["message"])
		}
	}
	return "none yet"
}

// requirement is the object of a claim in the hub, or an error.
func (h *secondHub) requirement(ctx context.Context, name string) (*unstructured.Unstructured, error) {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(schema.GroupVersionKind{Group: "database.acmeco.org", Version: "v1alpha1", Kind: "MySQLInstanceRequirement"})
	return u, h.Get(ctx, client.ObjectKey{Namespace: "bar", Name: name}, u)
}

var _ = Describe("A cluster that the hub of another Masthead enrols, too", secondFleet, needs(localProcesses, "starts a second hub"), func() {
	It("is refused to that hub as long as the first one has it, and loses nothing when it changes hands", func(ctx SpecContext) {
		enrolAll(ctx, "w1")
		travels(ctx, "w1", "moved")
		eventuallyReady(ctx, "moved")
		password := func() string { return get(ctx, "w1", "{.data.password}", "secret", "moved-creds") }
		Eventually(password).WithContext(ctx).ShouldNot(BeEmpty())
		identity := func() string {
			return get(ctx, "w1", "{.metadata.uid}", requirements, "moved") + get(ctx, "w1", "{.metadata.uid}", "secret", "moved-creds")
		}
		before, secret, inFirst := identity(), password(), uidInHub(ctx, "moved")
		finalizers := func() string { return get(ctx, "w1", "{.metadata.finalizers}", requirements, "moved") }
		firstHub := get(ctx, hub, "{.metadata.uid}", "namespace", "kube-system")
		Expect(finalizers()).To(ContainSubstring(firstHub))

		By("enrolling it in the second hub: it is refused, with the first hub's name")
		second := startSecondHub(ctx)
		release := second.enrol(ctx, "w1")
		Eventually(func() string { return second.connected(ctx, "w1") }).WithContext(ctx).
			Should(And(HavePrefix("False/ManagedByAnotherHub: "), ContainSubstring(firstHub)))
		_, err := second.requirement(ctx, "moved")
		Expect(client.IgnoreNotFound(err)).NotTo(HaveOccurred())
		Expect(err).To(HaveOccurred(), "nothing of the cluster gets to the second hub")
		kubectl(ctx, "w1", "patch", requirements, "moved", "--type=merge", "-p", `{"spec":{"storageGB":30}}`)
		Eventually(func() string {
			return get(ctx, hub, "{.spec.storageGB}", requirements, "moved", "--namespace", "bar")
		}).WithContext(ctx).Should(Equal("30"), "the first hub works on the cluster as if nothing was")
		Expect(connection(ctx, "w1")).To(Equal("True/Connected"))

		By("un-enrolling it from the first hub: the second takes it over")
		unenrol(ctx, "w1")
		Eventually(connection).WithArguments(ctx, "w1").WithContext(ctx).Should(BeEmpty())
		Eventually(func() string { return second.connected(ctx, "w1") }).WithContext(ctx).Should(HavePrefix("True/Connected"))
		var inSecond *unstructured.Unstructured
		Eventually(func() (err error) {
			inSecond, err = second.requirement(ctx, "moved")
			return err
		}).WithContext(ctx).Should(Succeed())
		size, _, _ := unstructured.NestedInt64(inSecond.Object, "spec", "storageGB")
		Expect(size).To(Equal(int64(30)))
		Eventually(finalizers).WithContext(ctx).Should(And(ContainSubstring(second.identity), Not(ContainSubstring(firstHub))))

		By("giving it there what it had: nothing in the cluster was created again")
		credentials := &corev1.Secret{Type: "connection.crossplane.io/v1alpha1"}
		credentials.Namespace, credentials.Name = "bar", "moved-creds"
		credentials.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(inSecond, inSecond.GroupVersionKind())}
		Expect(json.Unmarshal([]byte(get(ctx, hub, "{.data}", "secret", "moved-creds", "--namespace", "bar")), &credentials.Data)).To(Succeed())
		Expect(second.Create(ctx, credentials)).To(Succeed())
		Eventually(agentSynced).WithArguments(ctx, "w1", "moved").WithContext(ctx).Should(Equal("True/Synced"))
		Eventually(func() string { return get(ctx, "w1", `{.metadata.labels.masthead\.dev/hub}`, "secret", "moved-creds") }).
			WithContext(ctx).Should(Equal(second.identity))
		Expect(password()).To(Equal(secret))
		Expect(identity()).To(Equal(before))
		Expect(uidInHub(ctx, "moved")).To(Equal(inFirst), "what the first hub has stays there")

		By("letting it go: it can come back to the first hub")
		release(ctx)
		Expect(strings.Contains(finalizers(), second.identity)).To(BeFalse())
		stop, cancel := context.WithTimeout(ctx, time.Minute)
		defer cancel()
		Expect(second.manager.Stop(stop)).To(Succeed())
	})
})
