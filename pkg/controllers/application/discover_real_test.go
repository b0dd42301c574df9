// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package application

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appsv1alpha1 "github.com/masthead-dev/masthead/apis/apps/v1alpha1"
	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/internal/test/applicationtest"
	"github.com/masthead-dev/masthead/internal/test/controllertest"
	"github.com/masthead-dev/masthead/pkg/controllers/application/record"
)

// A kind in spec.discover that is misspelt, or not installed, does not keep an Application from being ready, and a
// condition names it.
func TestAKindThatIsNotServedIsReported(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.CreateConfigMapWith("settings", applicationtest.PartOfLabels("shop"), nil)
	kinds := append(slices.Clone(applicationtest.DiscoveredConfigMaps), appsv1alpha1.DiscoveredKind{Group: "example.org", Version: "v1", Kind: "Wigdet"})
	app := f.CreateDiscovering("shop", kinds, appsv1alpha1.DiscoverySource{PartOf: "shop"})
	f.WaitForDiscovered(app, "ConfigMap/~/settings Healthy")
	f.WaitForStatus(app, func(s appsv1alpha1.ApplicationStatus) error {
		c := meta.FindStatusCondition(s.Conditions, appsv1alpha1.ConditionComponentsWatched)
		if c == nil || c.Status != metav1.ConditionTrue || !strings.Contains(c.Message, `The cluster does not serve these kinds of spec.discover: "Wigdet (example.org/v1)".`) {
			return fmt.Errorf("want the kind to be named, got %+v", c)
		}
		return nil
	})
	f.WaitForHealth(app, appsv1alpha1.HealthHealthy)
}

func TestDiscoverByWhatOthersWrite(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	helm := func(name, namespace string) map[string]string {
		return map[string]string{"meta.helm.sh/release-name": name, "meta.helm.sh/release-namespace": namespace}
	}
	flux := func(of, name, namespace string) map[string]string {
		return map[string]string{of + ".toolkit.fluxcd.io/name": name, of + ".toolkit.fluxcd.io/namespace": namespace}
	}
	tracking := func(app, name string) map[string]string {
		return map[string]string{"argocd.argoproj.io/tracking-id": fmt.Sprintf("%s:/ConfigMap:%s/%s", app, f.Namespace, name)}
	}
	f.CreateConfigMapWith("part", applicationtest.PartOfLabels("shop"), nil)
	f.CreateConfigMapWith("instance", map[string]string{"app.kubernetes.io/instance": "shop"}, nil)
	f.CreateConfigMapWith("helm", nil, helm("shop", f.Namespace))
	f.CreateConfigMapWith("helm-elsewhere", nil, helm("shop", "elsewhere"))
	f.CreateConfigMapWith("kustomized", flux("kustomize", "shop", "flux-system"), nil)
	f.CreateConfigMapWith("released", flux("helm", "shop", "flux-system"), nil)
	f.CreateConfigMapWith("argo", nil, tracking("shop", "argo"))
	f.CreateConfigMapWith("argo-copy", nil, tracking("shop", "argo"))
	f.CreateConfigMapWith("argo-teams", nil, tracking("teams_shop", "argo-teams"))
	f.CreateConfigMapWith("stranger", applicationtest.PartOfLabels("other"), nil)
	own := &appsv1alpha1.DiscoveredRelease{Name: "shop"}
	system := &appsv1alpha1.DiscoveredRelease{Name: "shop", Namespace: "flux-system"}
	cases := map[string]struct {
		source appsv1alpha1.DiscoverySource
		want   string
	}{
		"by-part-of":       {appsv1alpha1.DiscoverySource{PartOf: "shop"}, "part"},
		"by-instance":      {appsv1alpha1.DiscoverySource{Instance: "shop"}, "instance"},
		"by-helm":          {appsv1alpha1.DiscoverySource{HelmRelease: own}, "helm"},
		"by-kustomization": {appsv1alpha1.DiscoverySource{FluxKustomization: system}, "kustomized"},
		"by-helm-release":  {appsv1alpha1.DiscoverySource{FluxHelmRelease: system}, "released"},
		"by-argo":          {appsv1alpha1.DiscoverySource{ArgoApplication: &appsv1alpha1.ArgoApplication{Name: "shop"}}, "argo"},
		"by-argo-teams":    {appsv1alpha1.DiscoverySource{ArgoApplication: &appsv1alpha1.ArgoApplication{Name: "shop", Namespace: "teams"}}, "argo-teams"},
	}
	later := f.CreateDiscovering("follows", applicationtest.DiscoveredConfigMaps, appsv1alpha1.DiscoverySource{PartOf: "later"})
	apps := map[string]*appsv1alpha1.Application{}
	for name, tc := range cases {
		apps[name] = f.CreateDiscovering(name, applicationtest.DiscoveredConfigMaps, tc.source)
	}
	for name, tc := range cases {
		app := apps[name]
		f.WaitForDiscovered(app, "ConfigMap/~/"+tc.want+" Healthy")
		f.WaitForHealth(app, appsv1alpha1.HealthHealthy)
		if c := app.Status.Counts; c.Discovered != 1 || c.Total != 1 || app.Status.ComponentsInstalled != "1/1" || len(app.Status.Installed) > 0 {
			t.Errorf("%s: got %+v", name, app.Status)
		}
	}
	// Discovered objects are observed and not changed.
	f.WaitForIdle()
	var all corev1.ConfigMapList
	if err := f.Workload.List(f.Ctx, &all, client.InNamespace(f.Namespace)); err != nil {
		t.Fatal(err)
	}
	for _, cm := range all.Items {
		if len(cm.OwnerReferences) > 0 || len(cm.Finalizers) > 0 {
			t.Errorf("%s was written: %v", cm.Name, cm.OwnerReferences)
		}
	}
	// The status follows changes of the objects.
	f.WaitForHealth(later, appsv1alpha1.HealthUnknown)
	cm := f.CreateConfigMapWith("later", applicationtest.PartOfLabels("later"), nil)
	f.WaitForDiscovered(later, "ConfigMap/~/later Healthy")
	f.Edit(f.Workload, cm, func() { cm.Labels = nil })
	f.WaitForDiscovered(later)
}

// Objects of a kind are found when a mark is first looked for, although no records of them were kept.
func TestDiscoverInAKindThatIsWatchedAlready(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	named := f.CreateApplication("named", applicationtest.Components(applicationtest.ConfigMaps, "settings"))
	f.CreateConfigMap("settings", "named")
	f.CreateConfigMapWith("old", applicationtest.PartOfLabels("shop"), nil)
	f.WaitForInstalled(named, "settings")
	app := f.CreateDiscovering("shop", applicationtest.DiscoveredConfigMaps, appsv1alpha1.DiscoverySource{PartOf: "shop"})
	f.WaitForDiscovered(app, "ConfigMap/~/old Healthy")
}

func TestNothingIsWrittenAtRestByWhatIsDiscovered(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.CreateConfigMapWith("settings", applicationtest.PartOfLabels("shop"), nil)
	app := f.CreateDiscovering("shop", applicationtest.DiscoveredConfigMaps, appsv1alpha1.DiscoverySource{PartOf: "shop"},
		appsv1alpha1.DiscoverySource{Object: &appsv1alpha1.DiscoveredObject{Version: "v1", Kind: "Service", Name: "none"}})
	f.WaitForDiscovered(app, "ConfigMap/~/settings Healthy", "Service/~/none Missing NotFound")
	f.WaitForIdle()
	before := f.Traffic.Count()
	f.restart()
	f.Within("the cluster is engaged", func() error {
		if _, ok := f.reconciler.workloads.Get(f.Cluster); !ok {
			return errors.New("it is not")
		}
		return nil
	})
	f.definitionsWatched()
	f.WaitForIdle()
	for _, request := range f.Traffic.Since(before, controllertest.Writes()...) {
		t.Errorf("after a restart nothing is written, got %s", request)
	}
}

// kustomizations is a served definition with the fields that Masthead reads. It stays: a definition being deleted would
// block the next one.
func (f *fixture) kustomizations() {
	f.T.Helper()
	crd := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: "kustomizations.kustomize.toolkit.fluxcd.io"}}
	crd.Spec = apiextensionsv1.CustomResourceDefinitionSpec{
		Group: record.KustomizationGVK.Group, Scope: apiextensionsv1.NamespaceScoped,
		Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: "kustomizations", Singular: "kustomization", Kind: "Kustomization", ListKind: "KustomizationList"},
		Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
			Name: record.KustomizationGVK.Version, Served: true, Storage: true,
			Subresources: &apiextensionsv1.CustomResourceSubresources{Status: &apiextensionsv1.CustomResourceSubresourceStatus{}},
			Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{
				Type: "object", XPreserveUnknownFields: new(true),
			}},
		}},
	}
	if err := f.Workload.Create(f.Ctx, crd); client.IgnoreAlreadyExists(err) != nil {
		f.T.Fatal(err)
	}
}

// kustomization creates a Kustomization that is ready and has applied some objects.
func (f *fixture) kustomization(namespace, name string, ids ...string) *unstructured.Unstructured {
	f.T.Helper()
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(record.KustomizationGVK)
	u.SetNamespace(namespace)
	u.SetName(name)
	f.Within("Kustomizations are served", func() error { return f.Workload.Create(f.Ctx, u.DeepCopy()) })
	f.SetInventory(u, ids...)
	return u
}

// One old failed Job of a CronJob does not make an Application Degraded: what a controller made is its controller's.
// That holds for each kind, each source by labels or annotations, and for controllers that are no part of the
// Application.
func TestWhatAControllerMadeIsNotDiscoveredByItsLabels(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	labels := map[string]string{
		appsv1alpha1.PartOfLabel: "shop", appsv1alpha1.InstanceLabel: "shop", appsv1alpha1.ArgoInstanceLabel: "shop",
		appsv1alpha1.FluxKustomizationNameLabel: "shop", appsv1alpha1.FluxKustomizationNamespaceLabel: "flux",
		appsv1alpha1.FluxHelmReleaseNameLabel: "shop", appsv1alpha1.FluxHelmReleaseNamespaceLabel: "flux",
	}
	helm := map[string]string{appsv1alpha1.HelmReleaseNameAnnotation: "shop", appsv1alpha1.HelmReleaseNamespaceAnnotation: f.Namespace}
	controlled := []metav1.OwnerReference{{APIVersion: "example.org/v1", Kind: "Shop", Name: "shop", UID: "uid-of-shop", Controller: new(true)}}
	pod := corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"x": "y"}},
		Spec:       corev1.PodSpec{RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{{Name: "x", Image: "x"}}},
	}
	meta := func(name string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: f.Namespace, Name: name, Labels: labels, Annotations: helm, OwnerReferences: controlled}
	}
	replicas := appsv1.ReplicaSetSpec{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"x": "y"}}, Template: pod}
	replicas.Template.Spec.RestartPolicy = ""
	job := &batchv1.Job{ObjectMeta: meta("failed"), Spec: batchv1.JobSpec{Template: pod}}
	f.Create(f.Workload, job, &corev1.Pod{ObjectMeta: meta("pod"), Spec: pod.Spec}, &appsv1.ReplicaSet{ObjectMeta: meta("web"), Spec: replicas},
		&corev1.ConfigMap{ObjectMeta: meta("by-an-operator")})
	f.fails(job)
	f.CreateConfigMapWith("settings", labels, helm)
	kinds := slices.Concat(applicationtest.DiscoveredConfigMaps, []appsv1alpha1.DiscoveredKind{
		{Group: "batch", Version: "v1", Kind: "Job"}, {Version: "v1", Kind: "Pod"}, {Group: "apps", Version: "v1", Kind: "ReplicaSet"},
	})
	own, flux := &appsv1alpha1.DiscoveredRelease{Name: "shop"}, &appsv1alpha1.DiscoveredRelease{Name: "shop", Namespace: "flux"}
	for name, source := range map[string]appsv1alpha1.DiscoverySource{
		"by-part-of": {PartOf: "shop"}, "by-instance": {Instance: "shop"}, "by-helm": {HelmRelease: own},
		"by-kustomization": {FluxKustomization: flux}, "by-helm-release": {FluxHelmRelease: flux},
		"by-argo": {ArgoApplication: &appsv1alpha1.ArgoApplication{Name: "shop"}},
	} {
		app := f.CreateDiscovering(name, kinds, source)
		f.WaitForDiscovered(app, "ConfigMap/~/settings Healthy")
		f.WaitForHealth(app, appsv1alpha1.HealthHealthy)
	}
	// Named, it counts.
	named := f.CreateDiscovering("named", nil, appsv1alpha1.DiscoverySource{Object: &appsv1alpha1.DiscoveredObject{Group: "batch", Version: "v1", Kind: "Job", Name: "failed"}})
	f.WaitForDiscovered(named, "Job/~/failed Degraded BackoffLimitExceeded")
	// What loses its controller is found, and what a controller adopts is not any more.
	app := f.CreateDiscovering("follows", applicationtest.DiscoveredConfigMaps, appsv1alpha1.DiscoverySource{PartOf: "shop"})
	f.WaitForDiscovered(app, "ConfigMap/~/settings Healthy")
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: f.Namespace, Name: "by-an-operator"}}
	f.Edit(f.Workload, cm, func() { cm.OwnerReferences = nil })
	f.WaitForDiscovered(app, "ConfigMap/~/settings Healthy", "ConfigMap/~/by-an-operator Healthy")
	f.Edit(f.Workload, cm, func() { cm.OwnerReferences = controlled })
	f.WaitForDiscovered(app, "ConfigMap/~/settings Healthy")
}

// fails makes a Job fail.
func (f *fixture) fails(job *batchv1.Job) {
	f.T.Helper()
	f.FinishJob(job, batchv1.JobFailed, batchv1.JobFailureTarget, "BackoffLimitExceeded")
}

// An inventory says more than marks: the kinds of objects, which are missing, and which objects only bear a copy of the
// labels.
func TestDiscoverByTheInventoryOfFlux(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.kustomizations()
	labels := map[string]string{"kustomize.toolkit.fluxcd.io/name": "shop", "kustomize.toolkit.fluxcd.io/namespace": f.Namespace}
	f.CreateConfigMapWith("settings", labels, nil)
	f.CreateConfigMapWith("copy", labels, nil)
	k := f.kustomization(f.Namespace, "shop", "~_settings__ConfigMap", "~_web__Service")
	app := f.CreateDiscovering("shop", nil, appsv1alpha1.DiscoverySource{FluxKustomization: &appsv1alpha1.DiscoveredRelease{Name: "shop"}})
	f.WaitForDiscovered(app, "Kustomization/~/shop Healthy", "ConfigMap/~/settings Healthy", "Service/~/web Missing NotFound")
	f.WaitForHealth(app, appsv1alpha1.HealthMissing)

	f.Create(f.Workload, &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: f.Namespace, Name: "web", Labels: labels},
		Spec:       corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}},
	})
	f.WaitForDiscovered(app, "Kustomization/~/shop Healthy", "ConfigMap/~/settings Healthy", "Service/~/web Healthy")
	f.SetInventory(k, "~_web__Service")
	f.WaitForDiscovered(app, "Kustomization/~/shop Healthy", "Service/~/web Healthy")

	missing := f.CreateDiscovering("missing", nil, appsv1alpha1.DiscoverySource{FluxKustomization: &appsv1alpha1.DiscoveredRelease{Name: "none"}})
	f.WaitForDiscovered(missing, "Kustomization/~/none Missing NotFound")
	helm := f.CreateDiscovering("no-helm", nil, appsv1alpha1.DiscoverySource{FluxHelmRelease: &appsv1alpha1.DiscoveredRelease{Name: "none"}})
	f.WaitForDiscovered(helm, "HelmRelease/~/none Unknown KindNotServed")
}

// Owning discovered objects takes two: the Application asks for it, and the hub's operator consents.
func TestWhatIsDiscoveredIsOwnedOnlyIfBothAskForIt(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	cm := f.CreateConfigMapWith("settings", applicationtest.PartOfLabels("shop"), nil)
	app := f.CreateDiscovering("shop", applicationtest.DiscoveredConfigMaps, appsv1alpha1.DiscoverySource{PartOf: "shop"})
	f.WaitForDiscovered(app, "ConfigMap/~/settings Healthy")
	f.WaitForOwned(cm, app, false)

	f.Edit(f.Workload, app, func() { app.Spec.Discover.Ownership = appsv1alpha1.DiscoveryOwnershipOwned })
	f.WaitForDiscovered(app, "ConfigMap/~/settings Healthy OwnershipForbidden")
	f.WaitForIdle()
	f.WaitForOwned(cm, app, false)

	f.EditClass(func(s *fleetv1alpha1.ApplicationsSpec) {
		s.DiscoveredOwnership = fleetv1alpha1.DiscoveredOwnershipAllowed
	})
	f.WaitForOwned(cm, app, true)
	f.WaitForDiscovered(app, "ConfigMap/~/settings Healthy")
	f.WaitForOwnedKinds(app, "ConfigMap")

	f.Edit(f.Workload, app, func() { app.Spec.Discover.Ownership = appsv1alpha1.DiscoveryOwnershipNone })
	f.WaitForOwned(cm, app, false)
	f.Edit(f.Workload, app, func() { app.Spec.Discover.Ownership = appsv1alpha1.DiscoveryOwnershipOwned })
	f.WaitForOwned(cm, app, true)
	f.Edit(f.Workload, app, func() { app.Spec.Discover = nil })
	f.WaitForOwned(cm, app, false)
}

// elsewhere creates another namespace with a marked ConfigMap.
func (f *fixture) elsewhere(suffix string) *corev1.ConfigMap {
	f.T.Helper()
	f.Create(f.Workload, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: f.Namespace + suffix}})
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: f.Namespace + suffix, Name: "secret-name", Labels: applicationtest.PartOfLabels("shop")}}
	f.Create(f.Workload, cm)
	return cm
}

// spy is an Application whose spec.discover asks for everything that it may not see.
func (f *fixture) spy(name, namespace string) *appsv1alpha1.Application {
	f.T.Helper()
	return f.CreateApplication(name, nil, func(app *appsv1alpha1.Application) {
		app.Spec.Discover = &appsv1alpha1.Discovery{
			Namespaces: []string{namespace},
			Kinds:      []appsv1alpha1.DiscoveredKind{{Version: "v1", Kind: "ConfigMap"}, {Version: "v1", Kind: "Namespace"}},
			Sources: []appsv1alpha1.DiscoverySource{
				{PartOf: "shop"},
				{Object: &appsv1alpha1.DiscoveredObject{Version: "v1", Kind: "ConfigMap", Namespace: namespace, Name: "secret-name"}},
				{Object: &appsv1alpha1.DiscoveredObject{Version: "v1", Kind: "Namespace", Name: namespace}},
				{FluxKustomization: &appsv1alpha1.DiscoveredRelease{Name: "infra", Namespace: namespace}},
				{FluxKustomization: &appsv1alpha1.DiscoveredRelease{Name: "none"}},
			},
		}
	})
}

// An author of Applications in one namespace may try to learn about another: whether it exists, its objects, their
// health, and what its Kustomizations apply. The answer is the same whether or not something exists, and does not
// change.
func TestAnAuthorLearnsNothingOfOtherNamespaces(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.kustomizations()
	cm := f.elsewhere("-victim")
	f.kustomization(f.Namespace+"-victim", "infra", f.Namespace+"-victim_secret-name__ConfigMap")
	// Another tenant may see it, so that it is watched and kept.
	f.Create(f.Workload, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: f.Namespace + "-friend"}})
	f.EditClass(func(s *fleetv1alpha1.ApplicationsSpec) {
		s.Visibility = []fleetv1alpha1.ApplicationVisibility{{
			From: []string{f.Namespace + "-friend"}, Namespaces: []string{f.Namespace + "-victim"},
			ClusterScoped: []fleetv1alpha1.ReferencedResource{{Resource: "namespaces"}},
		}}
	})
	f.WaitForServed()
	friend := &appsv1alpha1.Application{
		ObjectMeta: metav1.ObjectMeta{Namespace: f.Namespace + "-friend", Name: "shop"},
		Spec: appsv1alpha1.ApplicationSpec{Discover: &appsv1alpha1.Discovery{
			Namespaces: []string{f.Namespace + "-victim"}, Kinds: applicationtest.DiscoveredConfigMaps, Sources: []appsv1alpha1.DiscoverySource{
				{PartOf: "shop"}, {Object: &appsv1alpha1.DiscoveredObject{Version: "v1", Kind: "Namespace", Name: f.Namespace + "-victim"}},
			},
		}},
	}
	f.Create(f.Workload, friend)
	t.Cleanup(func() { f.Delete(f.Workload, friend) })
	f.WaitForDiscovered(friend, "ConfigMap/~-victim/secret-name Healthy", "Namespace//~-victim Healthy")

	full, empty := f.spy("full", f.Namespace+"-victim"), f.spy("empty", f.Namespace+"-absent")
	answer := func(app *appsv1alpha1.Application, namespace string) string {
		f.WaitForDiscovered(app,
			"ConfigMap/~"+namespace+"/secret-name Unknown NotAllowed", "Namespace//~"+namespace+" Unknown NotAllowed", "Namespace// Unknown NotAllowed")
		s := app.Status.DeepCopy()
		for i := range s.Conditions {
			s.Conditions[i].LastTransitionTime = metav1.Time{}
		}
		for i := range s.Discovered {
			s.Discovered[i].Since = nil
		}
		s.History = nil
		text, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		return strings.ReplaceAll(string(text), namespace, "-*")
	}
	if diff := cmp.Diff(answer(empty, "-absent"), answer(full, "-victim")); diff != "" {
		t.Errorf("the answer tells whether there is something: -without +with\n%s", diff)
	}
	f.WaitForIdle()
	version := full.ResourceVersion
	f.Edit(f.Workload, cm, func() {
		cm.Annotations = map[string]string{appsv1alpha1.ApplicationAnnotation: "full", appsv1alpha1.IgnoreHealthAnnotation: "true"}
	})
	f.Delete(f.Workload, cm)
	f.WaitForDiscovered(friend, "Namespace//~-victim Healthy")
	f.WaitForIdle()
	if err := f.Workload.Get(f.Ctx, client.ObjectKeyFromObject(full), full); err != nil || full.ResourceVersion != version {
		t.Errorf("a change elsewhere is reported (%v): %+v", err, full.Status)
	}
}

// The inventory of a Kustomization in the author's own namespace names objects elsewhere: anyone who can write its
// status can make it name anything.
func TestAnAuthorLearnsNothingThroughAnInventoryOfTheirOwn(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.kustomizations()
	f.elsewhere("-victim")
	f.kustomization(f.Namespace, "mine", "~-victim_secret-name__ConfigMap", "~-absent_secret-name__ConfigMap", "_~-victim__Namespace", "_~-absent__Namespace")
	app := f.CreateDiscovering("shop", nil, appsv1alpha1.DiscoverySource{FluxKustomization: &appsv1alpha1.DiscoveredRelease{Name: "mine"}})
	f.WaitForDiscovered(app, "Kustomization/~/mine Healthy", "Namespace// Unknown NotAllowed")
}

// Objects listed by the hub's operator are seen, only for their health, until they are no longer listed.
func TestDiscoverElsewhereWhereTheClassLetsIt(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	cm := f.elsewhere("-shared")
	f.EditClass(func(s *fleetv1alpha1.ApplicationsSpec) {
		s.DiscoveredOwnership = fleetv1alpha1.DiscoveredOwnershipAllowed
		s.Visibility = []fleetv1alpha1.ApplicationVisibility{{
			From: []string{f.Namespace}, Namespaces: []string{f.Namespace + "-shared"},
			ClusterScoped: []fleetv1alpha1.ReferencedResource{{Resource: "namespaces"}},
		}}
	})
	app := f.spy("shop", f.Namespace+"-shared")
	f.Edit(f.Workload, app, func() {
		app.Spec.Discover.Ownership = appsv1alpha1.DiscoveryOwnershipOwned
		app.Spec.Discover.Sources = app.Spec.Discover.Sources[:3]
	})
	f.WaitForDiscovered(app, "ConfigMap/~-shared/secret-name Healthy", "Namespace//~-shared Healthy")
	f.WaitForIdle()
	f.WaitForOwned(cm, app, false)

	f.EditClass(func(s *fleetv1alpha1.ApplicationsSpec) { s.Visibility = nil })
	f.WaitForDiscovered(app, "ConfigMap/~-shared/secret-name Unknown NotAllowed", "Namespace//~-shared Unknown NotAllowed", "Namespace// Unknown NotAllowed")
	if got := applicationtest.FormatCondition(app.Status, appsv1alpha1.ConditionStalled); got != "True NotAllowed" {
		t.Errorf("want the Application to be stalled, got %q", got)
	}
	if app.Status.Health != appsv1alpha1.HealthUnknown {
		t.Errorf("want what cannot be seen to be unknown, got %s", app.Status.Health)
	}
}
