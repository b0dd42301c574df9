// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package application

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appsv1alpha1 "github.com/masthead-dev/masthead/apis/apps/v1alpha1"
	"github.com/masthead-dev/masthead/internal/test/applicationtest"
	"github.com/masthead-dev/masthead/internal/test/controllertest"
)

func (f *fixture) deployment(name, application string) *appsv1.Deployment {
	f.T.Helper()
	labels := map[string]string{"pod": name}
	d := &appsv1.Deployment{ObjectMeta: f.MemberMeta(name, application), Spec: appsv1.DeploymentSpec{
		Selector: &metav1.LabelSelector{MatchLabels: labels},
		Template: corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: labels},
			Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "example.org/c"}}},
		},
	}}
	f.Create(f.Workload, d)
	return d
}

// available gives a Deployment a working or a failing status.
func (f *fixture) available(d *appsv1.Deployment, available bool) {
	f.T.Helper()
	f.Within("the status of "+d.Name, func() error {
		if err := f.Workload.Get(f.Ctx, client.ObjectKeyFromObject(d), d); err != nil {
			return err
		}
		d.Status = appsv1.DeploymentStatus{ObservedGeneration: d.Generation, Replicas: 1, UpdatedReplicas: 1}
		c := appsv1.DeploymentCondition{Type: appsv1.DeploymentAvailable, Status: corev1.ConditionFalse, Reason: "MinimumReplicasUnavailable"}
		if available {
			d.Status.ReadyReplicas, d.Status.AvailableReplicas = 1, 1
			c.Status, c.Reason = corev1.ConditionTrue, "MinimumReplicasAvailable"
		}
		d.Status.Conditions = []appsv1.DeploymentCondition{c, {Type: appsv1.DeploymentProgressing, Status: corev1.ConditionTrue, Reason: "NewReplicaSetAvailable"}}
		return f.Workload.Status().Update(f.Ctx, d)
	})
}

func TestInstallationStatusReportingOfComponents(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	kinds := applicationtest.Components(applicationtest.ConfigMaps, "settings")
	kinds["web"] = applicationtest.Deployments
	app := f.CreateApplication("shop", kinds)
	f.WaitForInstalled(app)
	f.WaitForHealth(app, appsv1alpha1.HealthMissing)

	settings := f.CreateConfigMap("settings", "shop")
	f.WaitForInstalled(app, "settings")
	web := f.deployment("web", "shop")
	f.WaitForInstalled(app, "settings", "web")
	f.available(web, true)
	f.WaitForHealth(app, appsv1alpha1.HealthHealthy)
	f.available(web, false)
	f.WaitForHealth(app, appsv1alpha1.HealthProgressing)

	f.Delete(f.Workload, settings)
	f.WaitForInstalled(app, "web")
	f.WaitForHealth(app, appsv1alpha1.HealthMissing)
}

// A component is found by its kind and name. Its entry in the spec can give another object name.
func TestInstallationStatusReportingGoesByTheName(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	named := applicationtest.ConfigMaps
	named.Name = "web"
	kinds := map[string]appsv1alpha1.ComponentKind{"web": applicationtest.Services, "web-settings": named}
	app := f.CreateApplication("shop", kinds)
	f.CreateConfigMap("other", "shop")
	f.WaitForStatus(app, func(s appsv1alpha1.ApplicationStatus) error {
		if s.Counts == nil || s.Counts.Selected != 1 || s.ComponentsInstalled != "0/2" {
			return errors.New("want one selected, and none installed")
		}
		return nil
	})
	f.CreateConfigMap("web", "shop")
	f.WaitForInstalled(app, "web-settings")
}

func TestInstallationStatusReportingOfDependencies(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	dependsOn := func(app *appsv1alpha1.Application) { app.Spec.Dependencies = []string{"mysql"} }
	app := f.CreateApplication("shop", applicationtest.Components(applicationtest.ConfigMaps, "settings"), dependsOn)
	f.CreateConfigMap("settings", "shop")
	f.WaitForInstalled(app, "settings")

	mysql := f.CreateApplication("mysql", applicationtest.Components(applicationtest.ConfigMaps, "mysql-settings"))
	f.WaitForInstalled(app, "mysql", "settings")
	f.WaitForStatus(app, func(s appsv1alpha1.ApplicationStatus) error {
		if len(s.Dependencies) != 1 || s.Dependencies[0].Health != appsv1alpha1.HealthMissing {
			return errors.New("want to see what mysql says of itself")
		}
		return nil
	})
	f.CreateConfigMap("mysql-settings", "mysql")
	f.WaitForStatus(app, func(s appsv1alpha1.ApplicationStatus) error {
		if len(s.Dependencies) != 1 || s.Dependencies[0].Health != appsv1alpha1.HealthHealthy {
			return errors.New("want to see that mysql has mended")
		}
		return nil
	})
	f.Delete(f.Workload, mysql)
	f.WaitForInstalled(app, "settings")
	if applicationtest.IsOwned(mysql, app) {
		t.Error("want the dependency not to be owned")
	}
}

func TestSelectingComponentsByExpressions(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	app := f.CreateApplication("shop", applicationtest.Components(applicationtest.ConfigMaps, "a", "b", "c"), func(app *appsv1alpha1.Application) {
		app.Spec.Selector = appsv1alpha1.LabelSelector{MatchExpressions: []appsv1alpha1.LabelSelectorRequirement{
			{Key: "tier", Operator: metav1.LabelSelectorOpIn, Values: []appsv1alpha1.LabelValue{"web", "db"}},
			{Key: "old", Operator: metav1.LabelSelectorOpDoesNotExist},
		}}
	})
	label := func(labels map[string]string) func(*corev1.ConfigMap) {
		return func(cm *corev1.ConfigMap) { cm.Labels = labels }
	}
	a := f.CreateConfigMap("a", "shop", label(map[string]string{"tier": "web"}))
	b := f.CreateConfigMap("b", "shop", label(map[string]string{"tier": "db", "old": "true"}))
	c := f.CreateConfigMap("c", "shop", label(map[string]string{"tier": "cache"}))
	f.WaitForOwned(a, app, true)
	f.WaitForInstalled(app, "a")
	f.WaitForIdle()
	f.WaitForOwned(b, app, false)
	f.WaitForOwned(c, app, false)
}

func TestGenerationObservation(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	app := f.CreateApplication("shop", nil)
	f.WaitForHealth(app, appsv1alpha1.HealthUnknown)
	before := app.Generation
	f.Edit(f.Workload, app, func() { app.Spec.Version = "2.0" })
	f.WaitForStatus(app, func(appsv1alpha1.ApplicationStatus) error {
		if app.Generation != before+1 {
			return fmt.Errorf("want generation %d, got %d", before+1, app.Generation)
		}
		return nil
	})
}

// An idle fleet receives no requests, and a restart rewrites nothing.
func TestIdleAsksNothingAndARestartWritesNothing(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	for i := range 5 {
		name := fmt.Sprintf("shop-%d", i)
		kinds := applicationtest.Components(applicationtest.ConfigMaps, name+"-settings", name+"-missing")
		kinds[name+"-web"] = applicationtest.Deployments
		kinds[name+"-unknown"] = appsv1alpha1.ComponentKind{Group: "nowhere.example.org", Version: "v1", Kind: "Nothing"}
		app := f.CreateApplication(name, kinds, func(app *appsv1alpha1.Application) { app.Spec.Dependencies = []string{"shop-0x", "elsewhere"} })
		f.CreateConfigMap(name+"-settings", name)
		f.available(f.deployment(name+"-web", name), true)
		f.WaitForInstalled(app, name+"-settings", name+"-web")
	}
	f.WaitForIdle()
	before := f.Traffic.Count()
	f.restart()
	f.WaitForIdle()
	if got := f.Traffic.Since(before, controllertest.Writes()...); len(got) != 0 {
		t.Errorf("want a restart to write nothing, got %q", got)
	}
}

func TestIdleAsksNothing(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	app := f.CreateApplication("shop", applicationtest.Components(applicationtest.ConfigMaps, "settings"))
	f.CreateConfigMap("settings", "shop")
	f.WaitForInstalled(app, "settings")
	f.definitionsWatched()
	f.WaitForIdle()
	// Changes of unrelated objects cost nothing either.
	before := f.Traffic.Count()
	stranger := f.CreateConfigMap("stranger", "shop", func(cm *corev1.ConfigMap) { cm.Annotations = nil })
	f.Edit(f.Workload, stranger, func() { stranger.Data = map[string]string{"a": "b"} })
	settings := f.CreateConfigMap("settings-of-absent", "absent")
	f.Edit(f.Workload, settings, func() { settings.Data = map[string]string{"a": "b"} })
	f.WaitForIdle()
	if got := f.Traffic.Since(before); len(got) != 0 {
		t.Errorf("want no request, got %q", got)
	}
}

// A new Application takes one request for its status, which also confirms that it is there, and one for each component
// that it adopts.
func TestRequestsOfANewApplication(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	first := f.CreateApplication("first", applicationtest.Components(applicationtest.ConfigMaps, "first"))
	f.CreateConfigMap("first", "first")
	f.WaitForInstalled(first, "first")
	var components []*corev1.ConfigMap
	for _, name := range []string{"a", "b", "c"} {
		components = append(components, f.CreateConfigMap(name, "shop"))
	}
	f.definitionsWatched()
	f.WaitForIdle()
	before := f.Traffic.Count()
	app := f.CreateApplication("shop", applicationtest.Components(applicationtest.ConfigMaps, "a", "b", "c"))
	for _, cm := range components {
		f.WaitForOwned(cm, app, true)
	}
	f.WaitForInstalled(app, "a", "b", "c")
	f.WaitForIdle()
	got := f.Traffic.Since(before)
	if len(got) != 1+len(components) || !strings.HasSuffix(got[0], "/applications/shop/status") {
		t.Errorf("want the status and then each component to be written, got %q", got)
	}
}

// Changes that do not affect an object's health trigger no reconcile.
func TestAChangeThatMeansNothingIsNotWritten(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	app := f.CreateApplication("shop", applicationtest.Components(applicationtest.ConfigMaps, "settings"))
	cm := f.CreateConfigMap("settings", "shop")
	f.WaitForInstalled(app, "settings")
	f.definitionsWatched()
	f.WaitForIdle()
	before := f.Traffic.Count()
	f.Edit(f.Workload, cm, func() { cm.Data = map[string]string{"a": "b"} })
	f.WaitForIdle()
	if got := f.Traffic.Since(before); len(got) != 0 {
		t.Errorf("want no request, got %q", got)
	}
}

// A Job that its ttlSecondsAfterFinished deletes has done what it is for. The status is all that remembers it.
func TestAJobStaysHealthyAfterItWasDeletedBecauseItFinished(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	app := f.CreateApplication("shop", applicationtest.Components(appsv1alpha1.ComponentKind{Group: "batch", Version: "v1", Kind: "Job"}, "migrate"))
	job := &batchv1.Job{ObjectMeta: f.MemberMeta("migrate", "shop"), Spec: batchv1.JobSpec{
		TTLSecondsAfterFinished: new(int32(60)),
		Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
			RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{{Name: "x", Image: "x"}},
		}},
	}}
	f.Create(f.Workload, job)
	f.FinishJob(job, batchv1.JobComplete, batchv1.JobSuccessCriteriaMet, "CompletionsReached")
	finished := func(s appsv1alpha1.ApplicationStatus) error {
		if got := applicationtest.FormatComponent(s, "migrate"); got != "True/Healthy Finished" || applicationtest.FormatCondition(s, appsv1alpha1.ConditionReady) != "True Ready" {
			return fmt.Errorf("got %q", got)
		}
		return nil
	}
	f.WaitForStatus(app, finished)
	changes := len(app.Status.History)
	f.Delete(f.Workload, job)
	f.restart()
	f.WaitForIdle()
	f.Edit(f.Workload, app, func() { app.Spec.Version = "2.0" })
	f.WaitForStatus(app, finished)
	if len(app.Status.History) != changes {
		t.Errorf("want no change of the health, got %+v", app.Status.History)
	}
	// Another Job is another matter.
	f.Edit(f.Workload, app, func() {
		app.Spec.Components["migrate"] = appsv1alpha1.ComponentKind{Group: "batch", Version: "v1", Kind: "Job", Name: "migrate-2"}
	})
	f.WaitForHealth(app, appsv1alpha1.HealthMissing)
}
