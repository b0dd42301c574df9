// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package application

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appsv1alpha1 "github.com/masthead-dev/masthead/apis/apps/v1alpha1"
	"github.com/masthead-dev/masthead/internal/test/controllertest"
	"github.com/masthead-dev/masthead/pkg/controllers/application/healthcheck"
	"github.com/masthead-dev/masthead/pkg/controllers/application/healthcheck/healthchecktest"
	"github.com/masthead-dev/masthead/pkg/kindwatch"
)

func checkedBy(image string) func(*appsv1alpha1.Application) {
	return func(app *appsv1alpha1.Application) {
		app.Spec.HealthCheck = healthchecktest.Application().Spec.HealthCheck
		app.Spec.HealthCheck.Template.Spec.Containers[0].Image = image
	}
}

// saysReady checks an Application's health check status.
func saysReady(ready corev1.ConditionStatus, reason, message string) func(appsv1alpha1.ApplicationStatus) error {
	return func(s appsv1alpha1.ApplicationStatus) error {
		c := meta.FindStatusCondition(s.Conditions, appsv1alpha1.ConditionHealthCheckPassed)
		if s.Ready != ready || c == nil || string(c.Status) != string(ready) || c.Reason != reason || !strings.Contains(c.Message, message) {
			return fmt.Errorf("want %s, %s, %q; got %s and %+v", ready, reason, message, s.Ready, c)
		}
		return nil
	}
}

// pod waits for the Pod of an Application that is not the one with a UID.
func (f *fixture) pod(app *appsv1alpha1.Application, not *corev1.Pod) *corev1.Pod {
	f.T.Helper()
	var pod *corev1.Pod
	f.Within("the Pod of "+app.Name, func() error {
		pods := &corev1.PodList{}
		if err := f.Workload.List(f.Ctx, pods, client.InNamespace(f.Namespace), client.MatchingLabels{appsv1alpha1.HealthCheckLabel: app.Name}); err != nil {
			return err
		}
		if len(pods.Items) != 1 || not != nil && pods.Items[0].UID == not.UID {
			return fmt.Errorf("want one new Pod, there are %d", len(pods.Items))
		}
		pod = &pods.Items[0]
		return nil
	})
	return pod
}

// say sets the status of a Pod, as its kubelet would.
func (f *fixture) say(pod *corev1.Pod, phase corev1.PodPhase, ready corev1.ConditionStatus) {
	f.T.Helper()
	f.Within("the status of a Pod", func() error {
		if err := f.Workload.Get(f.Ctx, client.ObjectKeyFromObject(pod), pod); err != nil {
			return err
		}
		pod.Status.Phase = phase
		pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: ready}}
		return f.Workload.Status().Update(f.Ctx, pod)
	})
}

// TestHealthCheckPods covers the KEP's section of that name and the next, "Health Status Reporting".
func TestHealthCheckPods(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	app := f.CreateApplication("checked", nil, checkedBy("one"))
	first := f.pod(app, nil)
	if o := metav1.GetControllerOf(first); o == nil || o.UID != app.UID || first.Name != healthcheck.Pod(app).Name {
		t.Errorf("the Pod is the Application's, and named by the hash of its template; got %q, owned by %v", first.Name, o)
	}
	f.WaitForStatus(app, saysReady(corev1.ConditionUnknown, appsv1alpha1.ReasonHealthCheckStarting, first.Name))
	f.say(first, corev1.PodRunning, corev1.ConditionTrue)
	f.WaitForStatus(app, saysReady(corev1.ConditionTrue, appsv1alpha1.ReasonHealthCheckReady, ""))
	f.say(first, corev1.PodRunning, corev1.ConditionFalse)
	f.WaitForStatus(app, saysReady(corev1.ConditionFalse, appsv1alpha1.ReasonHealthCheckNotReady, first.Name))

	f.Edit(f.Workload, app, func() { checkedBy("two")(app) })
	second := f.pod(app, first)
	if second.Name == first.Name || second.Spec.Containers[0].Image != "two" {
		t.Errorf("another template is another Pod, got %q", second.Name)
	}
	f.say(second, corev1.PodFailed, corev1.ConditionFalse)
	third := f.pod(app, second)
	if third.Name != second.Name {
		t.Errorf("the same template is a Pod of the same name: want %q, got %q", second.Name, third.Name)
	}

	f.Edit(f.Workload, app, func() { app.Spec.HealthCheck = nil })
	f.Within("the Pod goes", func() error {
		if err := f.Workload.Get(f.Ctx, client.ObjectKeyFromObject(third), &corev1.Pod{}); client.IgnoreNotFound(err) != nil || err == nil {
			return errors.New("it is still there")
		}
		return nil
	})
	f.WaitForStatus(app, saysReady(corev1.ConditionUnknown, appsv1alpha1.ReasonNoHealthCheck, ""))
}

func TestHealthCheckThatAClusterRefuses(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.WaitForServed()
	cases := map[string]struct {
		reason, want, message string
		prepare               func()
		change                func(*appsv1alpha1.Application)
	}{
		"invalid": {
			reason: "The schema of the template does not say everything that the API server asks for.",
			want:   appsv1alpha1.ReasonHealthCheckRefused, message: "spec.containers[0].volumeMounts[0].name: Not found",
			change: func(app *appsv1alpha1.Application) {
				checkedBy("x")(app)
				app.Spec.HealthCheck.Template.Spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "missing", MountPath: "/missing"}}
			},
		},
		"taken": {
			reason: "A Pod of another owner has the name.",
			want:   appsv1alpha1.ReasonHealthCheckRefused, message: "does not belong to this Application",
			prepare: func() {
				app := healthchecktest.Application(checkedBy("x"), func(a *appsv1alpha1.Application) {
					a.ObjectMeta = metav1.ObjectMeta{Namespace: f.Namespace, Name: "taken"}
				})
				// The template is hashed as the API server has it.
				if err := f.Workload.Create(f.Ctx, app, client.DryRunAll); err != nil {
					t.Fatal(err)
				}
				pod := healthcheck.Pod(app)
				pod.Labels, pod.OwnerReferences = nil, nil
				f.Create(f.Workload, pod)
			},
			change: checkedBy("x"),
		},
		"insecure": {
			reason: "Pod Security admission applies as to any Pod.",
			want:   appsv1alpha1.ReasonHealthCheckRefused, message: `violates PodSecurity "restricted:latest"`,
			prepare: func() {
				ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: f.Namespace}}
				f.Edit(f.Workload, ns, func() { ns.Labels["pod-security.kubernetes.io/enforce"] = "restricted" })
				// Admission reads namespaces from a watch, which may be behind.
				f.Within("the API server refuses Pods that are not secure", func() error {
					pod := &corev1.Pod{
						ObjectMeta: metav1.ObjectMeta{Namespace: f.Namespace, Name: "never"},
						Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "x"}}},
					}
					if err := f.Workload.Create(f.Ctx, pod, client.DryRunAll); err == nil || !strings.Contains(err.Error(), "violates PodSecurity") {
						return fmt.Errorf("it says %w", errors.Join(err, errors.New("nothing against it")))
					}
					return nil
				})
			},
			change: checkedBy("x"),
		},
	}
	for _, name := range []string{"invalid", "taken", "insecure"} { // The last one changes the namespace.
		tc := cases[name]
		if tc.prepare != nil {
			tc.prepare()
		}
		app := f.CreateApplication(name, nil, tc.change)
		f.Within(tc.reason, func() error {
			now := &appsv1alpha1.Application{}
			if err := f.Workload.Get(f.Ctx, client.ObjectKeyFromObject(app), now); err != nil {
				return err
			}
			return saysReady(corev1.ConditionUnknown, tc.want, tc.message)(now.Status)
		})
	}
}

// podGone waits until a Pod is gone and no status names it.
func (f *fixture) podGone(app *appsv1alpha1.Application, pod *corev1.Pod) {
	f.T.Helper()
	f.WaitForGone(f.Workload, pod)
	f.WaitForStatus(app, func(s appsv1alpha1.ApplicationStatus) error {
		if s.HealthCheckPod != "" {
			return errors.New("want no Pod")
		}
		return nil
	})
}

// A Pod of a health check that is no longer wanted is deleted, regardless of what blocked its deletion before.
func TestHealthCheckPodWhoseDeletionFails(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	app := f.CreateApplication("checked", nil, checkedBy("one"))
	pod := f.pod(app, nil)
	f.WaitForStatus(app, saysReady(corev1.ConditionUnknown, appsv1alpha1.ReasonHealthCheckStarting, pod.Name))
	var failed atomic.Bool
	f.Traffic.SetAnswer(func(req *http.Request) *http.Response {
		if req.Method != http.MethodDelete || !strings.Contains(req.URL.Path, "/pods/") || failed.Swap(true) {
			return nil
		}
		return controllertest.JSONAnswer(req, http.StatusInternalServerError, `{"kind":"Status","apiVersion":"v1","status":"Failure","code":500,"reason":"InternalError"}`)
	})
	f.Edit(f.Workload, app, func() { app.Spec.HealthCheck = nil })
	f.podGone(app, pod)
	if !failed.Load() {
		t.Error("want the first deletion to fail")
	}
}

// A health check removed before a status named its Pod leaves no Pod behind, even if the manager restarts.
func TestHealthCheckThatIsRemovedBeforeTheFirstStatus(t *testing.T) {
	t.Parallel()
	for _, restart := range []bool{false, true} {
		t.Run(fmt.Sprintf("restart=%t", restart), func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			f.Traffic.SetAnswer(func(req *http.Request) *http.Response {
				if req.Method != http.MethodPatch || !strings.HasSuffix(req.URL.Path, "/status") {
					return nil
				}
				return controllertest.JSONAnswer(req, http.StatusInternalServerError, `{"kind":"Status","apiVersion":"v1","status":"Failure","code":500,"reason":"InternalError"}`)
			})
			app := f.CreateApplication("checked", nil, checkedBy("one"))
			pod := f.pod(app, nil)
			if restart {
				f.stop()
			}
			f.Edit(f.Workload, app, func() { app.Spec.HealthCheck = nil })
			f.Traffic.SetAnswer(nil)
			if restart {
				f.start()
			}
			f.podGone(app, pod)
		})
	}
}

// While Pods may not be read, it is not known whether there is one. It is deleted once they may be read again.
func TestHealthCheckThatIsRemovedWhilePodsAreForbidden(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	app := f.CreateApplication("checked", nil, checkedBy("one"))
	pod := f.pod(app, nil)
	f.WaitForStatus(app, saysReady(corev1.ConditionUnknown, appsv1alpha1.ReasonHealthCheckStarting, pod.Name))
	gk := schema.GroupKind{Kind: "Pod"}
	f.AnswerFor("/api/v1/pods", http.StatusForbidden, `"code":403,"reason":"Forbidden","message":"cannot list resource"`)
	w, _ := f.reconciler.workloads.Get(f.Cluster)
	f.relist(gk)
	f.inState(gk, kindwatch.StateForbidden)
	f.Edit(f.Workload, app, func() { app.Spec.HealthCheck = nil })
	f.WaitForStatus(app, func(s appsv1alpha1.ApplicationStatus) error {
		if s.HealthCheckPod != pod.Name {
			return errors.New("want the Pod to be named as long as it may be there")
		}
		return nil
	})
	f.Traffic.SetAnswer(nil)
	w.Watcher.Retry(schema.GroupResource{Resource: "pods"})
	f.podGone(app, pod)
}
