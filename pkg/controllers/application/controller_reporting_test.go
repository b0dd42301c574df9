// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package application

import (
	"errors"
	"fmt"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appsv1alpha1 "github.com/masthead-dev/masthead/apis/apps/v1alpha1"
	"github.com/masthead-dev/masthead/internal/test/controllertest"
)

func (f *fixture) deployment(name, application string) *appsv1.Deployment {
	f.T.Helper()
	labels := map[string]string{"pod": name}
	d := &appsv1.Deployment{ObjectMeta: f.member(name, application), Spec: appsv1.DeploymentSpec{
		Selector: &metav1.LabelSelector{MatchLabels: labels},
		Template: corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: labels},
			Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "example.org/c"}}},
		},
	}}
	f.Create(f.workload, d)
	return d
}

// available gives a Deployment a working or a failing status.
func (f *fixture) available(d *appsv1.Deployment, available bool) {
	f.T.Helper()
	f.Within("the status of "+d.Name, func() error {
		if err := f.workload.Get(f.Ctx, client.ObjectKeyFromObject(d), d); err != nil {
			return err
		}
		d.Status = appsv1.DeploymentStatus{ObservedGeneration: d.Generation, Replicas: 1, UpdatedReplicas: 1}
		c := appsv1.DeploymentCondition{Type: appsv1.DeploymentAvailable, Status: corev1.ConditionFalse, Reason: "MinimumReplicasUnavailable"}
		if available {
			d.Status.ReadyReplicas, d.Status.AvailableReplicas = 1, 1
			c.Status, c.Reason = corev1.ConditionTrue, "MinimumReplicasAvailable"
		}
		d.Status.Conditions = []appsv1.DeploymentCondition{c, {Type: appsv1.DeploymentProgressing, Status: corev1.ConditionTrue, Reason: "NewReplicaSetAvailable"}}
		return f.workload.Status().Update(f.Ctx, d)
	})
}

func (f *fixture) health(app *appsv1alpha1.Application, want appsv1alpha1.Health) {
	f.T.Helper()
	f.has(app, func(s appsv1alpha1.ApplicationStatus) error {
		if s.Health != want {
			return fmt.Errorf("want %s, got %s", want, s.Health)
		}
		return nil
	})
}

func TestInstallationStatusReportingOfComponents(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	kinds := components(configMaps, "settings")
	kinds["web"] = deployments
	app := f.application("shop", kinds)
	f.installed(app)
	f.health(app, appsv1alpha1.HealthMissing)

	settings := f.configMap("settings", "shop")
	f.installed(app, "settings")
	web := f.deployment("web", "shop")
	f.installed(app, "settings", "web")
	f.available(web, true)
	f.health(app, appsv1alpha1.HealthHealthy)
	f.available(web, false)
	f.health(app, appsv1alpha1.HealthProgressing)

	f.Delete(f.workload, settings)
	f.installed(app, "web")
	f.health(app, appsv1alpha1.HealthMissing)
}

// A component is found by its kind and name. Its entry in the spec can give another object name.
func TestInstallationStatusReportingGoesByTheName(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	named := configMaps
	named.Name = "web"
	kinds := map[string]appsv1alpha1.ComponentKind{"web": services, "web-settings": named}
	app := f.application("shop", kinds)
	f.configMap("other", "shop")
	f.has(app, func(s appsv1alpha1.ApplicationStatus) error {
		if s.Counts == nil || s.Counts.Selected != 1 || s.ComponentsInstalled != "0/2" {
			return errors.New("want one selected, and none installed")
		}
		return nil
	})
	f.configMap("web", "shop")
	f.installed(app, "web-settings")
}

func TestInstallationStatusReportingOfDependencies(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	dependsOn := func(app *appsv1alpha1.Application) { app.Spec.Dependencies = []string{"mysql"} }
	app := f.application("shop", components(configMaps, "settings"), dependsOn)
	f.configMap("settings", "shop")
	f.installed(app, "settings")

	mysql := f.application("mysql", components(configMaps, "mysql-settings"))
	f.installed(app, "mysql", "settings")
	f.has(app, func(s appsv1alpha1.ApplicationStatus) error {
		if len(s.Dependencies) != 1 || s.Dependencies[0].Health != appsv1alpha1.HealthMissing {
			return errors.New("want to see what mysql says of itself")
		}
		return nil
	})
	f.configMap("mysql-settings", "mysql")
	f.has(app, func(s appsv1alpha1.ApplicationStatus) error {
		if len(s.Dependencies) != 1 || s.Dependencies[0].Health != appsv1alpha1.HealthHealthy {
			return errors.New("want to see that mysql has mended")
		}
		return nil
	})
	f.Delete(f.workload, mysql)
	f.installed(app, "settings")
	if isOwned(mysql, app) {
		t.Error("want the dependency not to be owned")
	}
}

func TestSelectingComponentsByExpressions(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	app := f.application("shop", components(configMaps, "a", "b", "c"), func(app *appsv1alpha1.Application) {
		app.Spec.Selector = appsv1alpha1.LabelSelector{MatchExpressions: []appsv1alpha1.LabelSelectorRequirement{
			{Key: "tier", Operator: metav1.LabelSelectorOpIn, Values: []appsv1alpha1.LabelValue{"web", "db"}},
			{Key: "old", Operator: metav1.LabelSelectorOpDoesNotExist},
		}}
	})
	label := func(labels map[string]string) func(*corev1.ConfigMap) {
		return func(cm *corev1.ConfigMap) { cm.Labels = labels }
	}
	a := f.configMap("a", "shop", label(map[string]string{"tier": "web"}))
	b := f.configMap("b", "shop", label(map[string]string{"tier": "db", "old": "true"}))
	c := f.configMap("c", "shop", label(map[string]string{"tier": "cache"}))
	f.owned(a, app, true)
	f.installed(app, "a")
	f.settled()
	f.owned(b, app, false)
	f.owned(c, app, false)
}

func TestGenerationObservation(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	app := f.application("shop", nil)
	f.health(app, appsv1alpha1.HealthUnknown)
	before := app.Generation
	f.Edit(f.workload, app, func() { app.Spec.Version = "2.0" })
	f.has(app, func(appsv1alpha1.ApplicationStatus) error {
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
		kinds := components(configMaps, name+"-settings", name+"-missing")
		kinds[name+"-web"] = deployments
		kinds[name+"-unknown"] = appsv1alpha1.ComponentKind{Group: "nowhere.example.org", Version: "v1", Kind: "Nothing"}
		app := f.application(name, kinds, func(app *appsv1alpha1.Application) { app.Spec.Dependencies = []string{"shop-0x", "elsewhere"} })
		f.configMap(name+"-settings", name)
		f.available(f.deployment(name+"-web", name), true)
		f.installed(app, name+"-settings", name+"-web")
	}
	f.settled()
	before := f.traffic.Count()
	f.restart()
	f.settled()
	if got := f.traffic.Since(before, controllertest.Writes()...); len(got) != 0 {
		t.Errorf("want a restart to write nothing, got %q", got)
	}
}

func TestIdleAsksNothing(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	app := f.application("shop", components(configMaps, "settings"))
	f.configMap("settings", "shop")
	f.installed(app, "settings")
	f.definitionsWatched()
	f.settled()
	// Changes of unrelated objects cost nothing either.
	before := f.traffic.Count()
	stranger := f.configMap("stranger", "shop", func(cm *corev1.ConfigMap) { cm.Annotations = nil })
	f.Edit(f.workload, stranger, func() { stranger.Data = map[string]string{"a": "b"} })
	settings := f.configMap("settings-of-absent", "absent")
	f.Edit(f.workload, settings, func() { settings.Data = map[string]string{"a": "b"} })
	f.settled()
	if got := f.traffic.Since(before); len(got) != 0 {
		t.Errorf("want no request, got %q", got)
	}
}

// Changes that do not affect an object's health trigger no reconcile.
func TestAChangeThatMeansNothingIsNotWritten(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	app := f.application("shop", components(configMaps, "settings"))
	cm := f.configMap("settings", "shop")
	f.installed(app, "settings")
	f.definitionsWatched()
	f.settled()
	before := f.traffic.Count()
	f.Edit(f.workload, cm, func() { cm.Data = map[string]string{"a": "b"} })
	f.settled()
	if got := f.traffic.Since(before); len(got) != 0 {
		t.Errorf("want no request, got %q", got)
	}
}

// A Job that its ttlSecondsAfterFinished deletes has done what it is for. The status is all that remembers it.
func TestAJobStaysHealthyAfterItWasDeletedBecauseItFinished(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	app := f.application("shop", components(appsv1alpha1.ComponentKind{Group: "batch", Version: "v1", Kind: "Job"}, "migrate"))
	job := &batchv1.Job{ObjectMeta: f.member("migrate", "shop"), Spec: batchv1.JobSpec{
		TTLSecondsAfterFinished: new(int32(60)),
		Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
			RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{{Name: "x", Image: "x"}},
		}},
	}}
	f.Create(f.workload, job)
	f.ends(job, batchv1.JobComplete, batchv1.JobSuccessCriteriaMet, "CompletionsReached")
	finished := func(s appsv1alpha1.ApplicationStatus) error {
		if got := componentOfStatus(s, "migrate"); got != "True/Healthy Finished" || formatCondition(s, appsv1alpha1.ConditionReady) != "True Ready" {
			return fmt.Errorf("got %q", got)
		}
		return nil
	}
	f.has(app, finished)
	changes := len(app.Status.History)
	f.Delete(f.workload, job)
	f.restart()
	f.settled()
	f.Edit(f.workload, app, func() { app.Spec.Version = "2.0" })
	f.has(app, finished)
	if len(app.Status.History) != changes {
		t.Errorf("want no change of the health, got %+v", app.Status.History)
	}
	// Another Job is another matter.
	f.Edit(f.workload, app, func() {
		app.Spec.Components["migrate"] = appsv1alpha1.ComponentKind{Group: "batch", Version: "v1", Kind: "Job", Name: "migrate-2"}
	})
	f.health(app, appsv1alpha1.HealthMissing)
}
