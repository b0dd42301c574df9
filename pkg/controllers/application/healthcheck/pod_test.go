// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package healthcheck

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"

	appsv1alpha1 "github.com/masthead-dev/masthead/apis/apps/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/condition"
	"github.com/masthead-dev/masthead/pkg/controllers/application/healthcheck/healthchecktest"
)

// newRecord is a Pod as the watch has it.
func newRecord(t *testing.T, pod *corev1.Pod) Record {
	t.Helper()
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(pod)
	if err != nil {
		t.Fatal(err)
	}
	r, ok := Reduce(&unstructured.Unstructured{Object: content})
	if !ok {
		t.Fatalf("%s is not the Pod of a health check", pod.Name)
	}
	return r
}

func TestHealthCheckPod(t *testing.T) {
	app := healthchecktest.Application()
	before := app.DeepCopy()
	pod := Pod(app)
	hash := templateHash(&app.Spec.HealthCheck.Template)
	want := &corev1.Pod{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: "wordpress-" + hash,
			Labels:      map[string]string{"app": "wordpress", "apps.masthead.dev/health-check": "wordpress", "apps.masthead.dev/template-hash": hash},
			Annotations: map[string]string{"note": "x", "kubernetes.io/application": "wordpress"},
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: "apps.masthead.dev/v1alpha1", Kind: "Application", Name: "wordpress", UID: "1", Controller: new(true),
			}},
		},
		Spec: app.Spec.HealthCheck.Template.Spec,
	}
	if diff := cmp.Diff(want, pod); diff != "" {
		t.Errorf("The Pod is in the Application's namespace, has the labels and annotations of the template, and no finalizers and owners of its:\n%s", diff)
	}
	if diff := cmp.Diff(before, app); diff != "" {
		t.Errorf("the Application was changed:\n%s", diff)
	}
	if !IsPod(pod.Labels) || IsPod(app.Spec.HealthCheck.Template.Labels) {
		t.Error("a health check's Pod is known by its labels")
	}
	if Pod(healthchecktest.Application(func(a *appsv1alpha1.Application) { a.Spec.HealthCheck = nil })) != nil {
		t.Error("there is no Pod without a health check")
	}
	now := metav1.Now()
	if Pod(healthchecktest.Application(func(a *appsv1alpha1.Application) { a.DeletionTimestamp = &now })) != nil {
		t.Error("an Application that is being deleted gets no Pod")
	}
}

func TestHealthCheckPodIsNamedByTheHashOfItsTemplate(t *testing.T) {
	name := func(modify ...func(*appsv1alpha1.Application)) string {
		return Pod(healthchecktest.Application(modify...)).Name
	}
	image := func(a *appsv1alpha1.Application) { a.Spec.HealthCheck.Template.Spec.Containers[0].Image = "other" }
	rest := func(a *appsv1alpha1.Application) { a.Spec.Version, a.Generation = "2", 7 }
	if name() != name(rest) {
		t.Error("what is not in the template must not replace the Pod")
	}
	if name() == name(image) {
		t.Error("another template is another Pod")
	}
	// The hash is in the names of Pods in users' clusters: a change of it replaces every one of them.
	if want := "wordpress-"; !strings.HasPrefix(name(), want) {
		t.Errorf("want a name that begins with %q, got %q", want, name())
	}
	long := strings.Repeat("a", 250)
	called := func(application string) string {
		return name(func(a *appsv1alpha1.Application) { a.Name = application })
	}
	names := map[string]bool{}
	for _, application := range []string{long + "1", long + "2", strings.Repeat("a.", 126) + "a", strings.Repeat("a-", 126) + "a", "a"} {
		n := called(application)
		if names[n] {
			t.Errorf("two Applications have the Pod %q", n)
		}
		names[n] = true
		if problems := append(validation.IsDNS1123Subdomain(n), validation.IsValidLabelValue(labelValue(application))...); len(problems) > 0 || len(n) > 63 {
			t.Errorf("%q is no name of a Pod and its host, or %q no value of a label: %v", n, labelValue(application), problems)
		}
	}
}

func TestReducePod(t *testing.T) {
	base := Pod(healthchecktest.Application())
	base.UID = "p1"
	status := func(modify func(*corev1.Pod)) *corev1.Pod {
		p := base.DeepCopy()
		modify(p)
		return p
	}
	ready := func(s corev1.ConditionStatus) []corev1.PodCondition {
		return []corev1.PodCondition{{Type: corev1.PodReady, Status: s, Message: "containers with unready status: [check]"}}
	}
	kept := func(modify func(*Record)) Record {
		r := Record{
			Key: types.NamespacedName{Namespace: "shop", Name: base.Name}, UID: "p1", Owner: "1",
			Hash: base.Labels[appsv1alpha1.TemplateHashLabel],
		}
		modify(&r)
		return r
	}
	now := metav1.Now()
	cases := map[string]struct {
		reason string
		pod    *corev1.Pod
		want   Record
		view   View
	}{
		"New": {
			reason: "A Pod without the condition Ready is Unknown, as the KEP says.",
			pod:    base, want: kept(func(*Record) {}),
			view: View{Ready: corev1.ConditionUnknown, Problem: &condition.Error{Reason: "HealthCheckStarting", Message: `The Pod "NAME" does not report yet whether it is ready`}},
		},
		"Unschedulable": {
			reason: "Why it does not start is worth knowing.",
			pod: status(func(p *corev1.Pod) {
				p.Status = corev1.PodStatus{Phase: corev1.PodPending, Conditions: []corev1.PodCondition{{
					Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Message: "0/3 nodes are available",
				}}}
			}),
			want: kept(func(r *Record) { r.phase, r.Message = corev1.PodPending, "0/3 nodes are available" }),
			view: View{Ready: corev1.ConditionUnknown, Problem: &condition.Error{Reason: "HealthCheckStarting", Message: `The Pod "NAME" does not report yet whether it is ready: 0/3 nodes are available`}},
		},
		"Ready": {
			reason: "That is what the Application is.",
			pod: status(func(p *corev1.Pod) {
				p.Status = corev1.PodStatus{Phase: corev1.PodRunning, Conditions: ready(corev1.ConditionTrue)}
			}),
			want: kept(func(r *Record) { r.phase, r.ready = corev1.PodRunning, corev1.ConditionTrue }),
			view: View{Ready: corev1.ConditionTrue},
		},
		"NotReady": {
			reason: "Or is not.",
			pod: status(func(p *corev1.Pod) {
				p.Status = corev1.PodStatus{Phase: corev1.PodRunning, Conditions: ready(corev1.ConditionFalse)}
			}),
			want: kept(func(r *Record) {
				r.phase, r.ready, r.Message = corev1.PodRunning, corev1.ConditionFalse, "containers with unready status: [check]"
			}),
			view: View{Ready: corev1.ConditionFalse, Problem: &condition.Error{Reason: "HealthCheckNotReady", Message: `The Pod "NAME" is not ready: containers with unready status: [check]`}},
		},
		"Evicted": {
			reason: "A Pod that has ended is not ready, even if its condition Ready is still true.",
			pod: status(func(p *corev1.Pod) {
				p.Status = corev1.PodStatus{Phase: corev1.PodFailed, Reason: "Evicted", Message: "low on memory\n", Conditions: ready(corev1.ConditionTrue)}
			}),
			want: kept(func(r *Record) {
				r.phase, r.ready, r.Message = corev1.PodFailed, corev1.ConditionTrue, "Evicted: low on memory"
			}),
			view: View{Ready: corev1.ConditionFalse, Problem: &condition.Error{Reason: "HealthCheckNotReady", Message: `The Pod "NAME" has ended (Failed) and will be replaced: Evicted: low on memory`}},
		},
		"Succeeded": {
			reason: "A health check has to go on.",
			pod: status(func(p *corev1.Pod) {
				p.Status = corev1.PodStatus{Phase: corev1.PodSucceeded, Conditions: ready(corev1.ConditionFalse)}
			}),
			want: kept(func(r *Record) {
				r.phase, r.ready, r.Message = corev1.PodSucceeded, corev1.ConditionFalse, "containers with unready status: [check]"
			}),
			view: View{Ready: corev1.ConditionFalse, Problem: &condition.Error{Reason: "HealthCheckNotReady", Message: `The Pod "NAME" has ended (Succeeded) and will be replaced: containers with unready status: [check]`}},
		},
		"Deleted": {
			reason: "It will be replaced when it is gone; until then its word counts.",
			pod: status(func(p *corev1.Pod) {
				p.DeletionTimestamp = &now
				p.Status = corev1.PodStatus{Phase: corev1.PodRunning, Conditions: ready(corev1.ConditionFalse)}
			}),
			want: kept(func(r *Record) {
				r.deleting, r.phase, r.ready, r.Message = true, corev1.PodRunning, corev1.ConditionFalse, "containers with unready status: [check]"
			}),
			view: View{Ready: corev1.ConditionFalse, Problem: &condition.Error{Reason: "HealthCheckStarting", Message: `The Pod "NAME" is being deleted; another one will replace it.`}},
		},
		"OfSomethingElse": {
			reason: "A label and a name are no ownership.",
			pod:    status(func(p *corev1.Pod) { p.OwnerReferences[0].APIVersion = "apps.example.org/v1" }),
			want:   kept(func(r *Record) { r.Owner = "" }),
			view:   View{Ready: corev1.ConditionUnknown, Problem: &condition.Error{Reason: "HealthCheckStarting", Message: `The Pod "NAME" does not report yet whether it is ready`}},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := newRecord(t, tc.pod)
			if diff := cmp.Diff(tc.want, got, cmp.AllowUnexported(Record{})); diff != "" {
				t.Errorf("%s\n-want +got:\n%s", tc.reason, diff)
			}
			tc.view.Pod = base.Name
			if tc.view.Problem != nil {
				tc.view.Problem.Message = strings.ReplaceAll(tc.view.Problem.Message, "NAME", base.Name)
			}
			if diff := cmp.Diff(tc.view, got.view(), cmp.AllowUnexported(View{}, condition.Error{})); diff != "" {
				t.Errorf("%s\n-want +got:\n%s", tc.reason, diff)
			}
		})
	}
}
