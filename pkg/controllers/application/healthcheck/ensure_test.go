// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package healthcheck

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	testingclock "k8s.io/utils/clock/testing"

	appsv1alpha1 "github.com/masthead-dev/masthead/apis/apps/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/apierror"
	"github.com/masthead-dev/masthead/pkg/controllers/application/bounds"
	"github.com/masthead-dev/masthead/pkg/controllers/application/healthcheck/healthchecktest"
)

// fakePods is a cluster with an Application and Pods.
type fakePods struct {
	t        *testing.T
	uid      types.UID
	pods     map[types.NamespacedName]Record
	answer   error // The answer to the next requests.
	requests []string
}

func newFakePods(t *testing.T) *fakePods {
	t.Helper()
	return &fakePods{t: t, uid: "1", pods: map[types.NamespacedName]Record{}}
}

func (f *fakePods) ApplicationUID(context.Context, types.NamespacedName) (types.UID, error) {
	return f.uid, nil
}

func (f *fakePods) CreatePod(_ context.Context, pod *corev1.Pod) error {
	f.requests = append(f.requests, "create "+pod.Name)
	if f.answer != nil {
		return f.answer
	}
	r := newRecord(f.t, pod)
	if _, taken := f.pods[r.Key]; taken {
		return apierrors.NewAlreadyExists(schema.GroupResource{Resource: "pods"}, pod.Name)
	}
	r.UID = types.UID(pod.Name)
	f.pods[r.Key] = r
	return nil
}

func (f *fakePods) GetPod(_ context.Context, key types.NamespacedName) (Record, error) {
	if r, ok := f.pods[key]; ok {
		return r, nil
	}
	return Record{}, apierrors.NewNotFound(schema.GroupResource{Resource: "pods"}, key.Name)
}

func (f *fakePods) DeletePod(_ context.Context, pod Record) error {
	f.requests = append(f.requests, "delete "+pod.Key.Name)
	if f.answer != nil {
		return f.answer
	}
	delete(f.pods, pod.Key)
	return nil
}

// checkup runs the health check of an Application in a fake cluster.
type checkup struct {
	*fakePods
	checks *Checks
	clock  *testingclock.FakePassiveClock
	app    *appsv1alpha1.Application
}

func newCheckup(t *testing.T, modify ...func(*appsv1alpha1.Application)) *checkup {
	t.Helper()
	clock := testingclock.NewFakePassiveClock(time.Unix(1_700_000_000, 0))
	return &checkup{fakePods: newFakePods(t), checks: New(clock), clock: clock, app: healthchecktest.Application(modify...)}
}

// ensure runs it once and returns when it is to be run again, and the requests to the cluster.
func (c *checkup) ensure() (View, time.Duration, []string) {
	c.t.Helper()
	c.requests = nil
	view, err := c.checks.Ensure(c.t.Context(), c, c.app, slices.Collect(maps.Values(c.pods)))
	if err != nil {
		c.t.Fatal(err)
	}
	var again time.Duration
	if view.Problem != nil {
		again = view.Problem.RetryAfter
	}
	return view, again, c.requests
}

func (c *checkup) name() string { return Pod(c.app).Name }

// set changes the existing Pod.
func (c *checkup) set(modify func(*Record)) {
	c.t.Helper()
	key := types.NamespacedName{Namespace: c.app.Namespace, Name: c.name()}
	r, ok := c.pods[key]
	if !ok {
		c.t.Fatalf("there is no Pod %s", key)
	}
	modify(&r)
	c.pods[key] = r
}

func (c *checkup) lose() { clear(c.pods) }

func (c *checkup) after(d time.Duration) { c.clock.SetTime(c.clock.Now().Add(d)) }

func wantRequests(t *testing.T, reason string, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s\nwant %q, got %q", reason, want, got)
	}
}

func TestHealthCheckPodsAreCreatedAndReplacedOnMutation(t *testing.T) {
	c := newCheckup(t)
	first := c.name()
	view, _, requests := c.ensure()
	wantRequests(t, "The Pod is made from the template.", requests, "create "+first)
	if view.Pod != first || view.Ready != corev1.ConditionUnknown || view.Problem.Reason != appsv1alpha1.ReasonHealthCheckStarting {
		t.Errorf("unexpected view %+v", view)
	}
	_, _, requests = c.ensure()
	wantRequests(t, "There it is.", requests)

	c.app.Spec.HealthCheck.Template.Spec.Containers[0].Image = "other"
	view, _, requests = c.ensure()
	wantRequests(t, "Another template is another Pod, at once.", requests, "delete "+first, "create "+c.name())
	if view.Pod != c.name() || view.Pod == first {
		t.Errorf("the view is of the new Pod, got %+v", view)
	}

	second := c.name()
	c.app.Spec.HealthCheck = nil
	view, _, requests = c.ensure()
	wantRequests(t, "Without a health check there is no Pod.", requests, "delete "+second)
	if diff := cmp.Diff(View{Ready: corev1.ConditionUnknown}, view, cmp.AllowUnexported(View{})); diff != "" {
		t.Error(diff)
	}
	if len(c.checks.attempts) != 0 {
		t.Error("nothing is remembered of an Application without a health check")
	}
}

func TestHealthCheckPodsAreReplacedWhenLostFailedOrEvicted(t *testing.T) {
	for name, phase := range map[string]corev1.PodPhase{"Failed": corev1.PodFailed, "Succeeded": corev1.PodSucceeded, "Lost": ""} {
		t.Run(name, func(t *testing.T) {
			c := newCheckup(t)
			c.ensure()
			c.after(time.Hour)
			if phase == "" {
				c.lose()
			} else {
				c.set(func(p *Record) { p.phase = phase })
				view, _, requests := c.ensure()
				wantRequests(t, "One that has lasted is replaced at once.", requests, "delete "+c.name())
				if view.Ready != corev1.ConditionFalse {
					t.Errorf("one that has ended is not ready, got %s", view.Ready)
				}
			}
			_, _, requests := c.ensure()
			wantRequests(t, "Another one takes its place.", requests, "create "+c.name())
		})
	}
}

func TestHealthCheckPodsThatFailAtOnceAreNotMadeInAHotLoop(t *testing.T) {
	c := newCheckup(t)
	c.ensure()
	// Each Pod fails a second after it was created. The time until the next one doubles, up to five minutes.
	for i, seconds := range []int{10, 20, 40, 80, 160, 300, 300} {
		want := time.Duration(seconds) * time.Second
		c.after(time.Second)
		c.set(func(p *Record) { p.phase = corev1.PodFailed })
		_, again, requests := c.ensure()
		wantRequests(t, "It is left for people to look at.", requests)
		if again != want-time.Second {
			t.Fatalf("failure %d: want to look again after %s, got %s", i, want-time.Second, again)
		}
		c.after(again)
		_, _, requests = c.ensure()
		wantRequests(t, "Its time has come.", requests, "delete "+c.name())
		_, _, requests = c.ensure()
		wantRequests(t, "Another one takes its place.", requests, "create "+c.name())
	}
	// The author fixes the template.
	old := c.name()
	c.app.Spec.HealthCheck.Template.Spec.Containers[0].Image = "mended"
	_, _, requests := c.ensure()
	wantRequests(t, "Another template is another matter.", requests, "delete "+old, "create "+c.name())
	// A Pod that runs for an hour makes earlier failures irrelevant.
	c.after(time.Hour)
	c.lose()
	c.ensure()
	if got := c.checks.attempts["1"].delay; got != healthCheckDelay {
		t.Errorf("want %s, got %s", healthCheckDelay, got)
	}
}

func TestHealthCheckPodThatIsLostAtOnceIsNotMadeInAHotLoop(t *testing.T) {
	c := newCheckup(t)
	c.ensure()
	c.lose() // Or the watch has yet to show it.
	_, again, requests := c.ensure()
	wantRequests(t, "It is too early.", requests)
	if again != healthCheckDelay {
		t.Errorf("want to look again after %s, got %s", healthCheckDelay, again)
	}
	c.after(again)
	_, _, requests = c.ensure()
	wantRequests(t, "Its time has come.", requests, "create "+c.name())
}

func TestHealthCheckTouchesNoPodOfAnotherOwner(t *testing.T) {
	other := func(c *checkup, modify func(*Record)) {
		r := newRecord(c.t, Pod(c.app))
		r.UID, r.Owner = "theirs", ""
		modify(&r)
		c.pods[r.Key] = r
	}
	cases := map[string]struct {
		reason string
		modify func(*Record)
		want   string
	}{
		"Foreign":          {reason: "The name is taken.", modify: func(*Record) {}, want: appsv1alpha1.ReasonHealthCheckRefused},
		"OfThePreviousOne": {reason: "An Application of the same name was deleted, and its Pod is about to be.", modify: func(r *Record) { r.Owner = "0" }, want: appsv1alpha1.ReasonHealthCheckStarting},
		"OnItsWayOut":      {reason: "It will not be there for long.", modify: func(r *Record) { r.deleting = true }, want: appsv1alpha1.ReasonHealthCheckStarting},
		"FailedAndForeign": {reason: "That it has ended is its owner's business.", modify: func(r *Record) { r.phase = corev1.PodFailed }, want: appsv1alpha1.ReasonHealthCheckRefused},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := newCheckup(t)
			other(c, tc.modify)
			view, again, requests := c.ensure()
			wantRequests(t, tc.reason, requests, "create "+c.name())
			if view.Ready != corev1.ConditionUnknown || view.Problem == nil || view.Problem.Reason != tc.want || again != healthCheckDelay {
				t.Errorf("%s\nwant Unknown and %s, got %+v, %+v, again after %s", tc.reason, tc.want, view, view.Problem, again)
			}
			view, _, requests = c.ensure()
			wantRequests(t, "It waits.", requests)
			if view.Problem == nil || view.Problem.Reason != tc.want {
				t.Errorf("the problem stays: want %s, got %+v", tc.want, view.Problem)
			}
			c.lose()
			c.after(again)
			_, _, requests = c.ensure()
			wantRequests(t, "The name is free.", requests, "create "+c.name())
			if view, _, _ = c.ensure(); view.Problem.Reason != appsv1alpha1.ReasonHealthCheckStarting {
				t.Errorf("want HealthCheckStarting, got %+v", view.Problem)
			}
		})
	}
}

// denied is the answer of admission.
func denied(code int32, reason metav1.StatusReason, message, field string) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: code, Reason: reason, Message: message,
		Details: &metav1.StatusDetails{Causes: []metav1.StatusCause{{Message: message, Field: field}}},
	}}
}

func TestHealthCheckThatIsRefused(t *testing.T) {
	pods := schema.GroupResource{Resource: "pods"}
	terminating := apierrors.NewForbidden(pods, "x", errors.New("it is being terminated"))
	terminating.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}
	cases := map[string]struct {
		reason   string
		answer   error
		want     string
		message  string
		terminal bool
		err      bool
	}{
		"NoRight": {
			reason:  "The right is opt-in. It may be granted later.",
			answer:  apierrors.NewForbidden(pods, "x", errors.New(`User "m" cannot create resource "pods" in API group "" in the namespace "shop"`)),
			want:    appsv1alpha1.ReasonHealthCheckForbidden,
			message: `Masthead lacks the right to create Pods in the namespace "shop"`,
		},
		"PodSecurity": {
			reason:  "Admission refuses with the same code as the authorizer. What it says is for the user, and the namespace may change.",
			answer:  apierrors.NewForbidden(pods, "x", errors.New(`violates PodSecurity "restricted:latest"`)),
			want:    appsv1alpha1.ReasonHealthCheckRefused,
			message: `violates PodSecurity "restricted:latest"`,
		},
		"Invalid": {
			reason:  "The same template would be refused again.",
			answer:  apierrors.NewInvalid(schema.GroupKind{Kind: "Pod"}, "x", field.ErrorList{field.Required(field.NewPath("spec", "containers").Index(0).Child("image"), "")}),
			want:    appsv1alpha1.ReasonHealthCheckRefused,
			message: "spec.containers[0].image: Required value", terminal: true,
		},
		"Policy": {
			reason:  "A policy denies with the code of invalid objects, and may change.",
			answer:  denied(http.StatusUnprocessableEntity, metav1.StatusReasonInvalid, `ValidatingAdmissionPolicy "p" with binding "b" denied request: no`, ""),
			want:    appsv1alpha1.ReasonHealthCheckRefused,
			message: `ValidatingAdmissionPolicy "p" with binding "b" denied request: no`,
		},
		"WebhookThatNamesFields": {
			reason:  "So may a webhook that names fields.",
			answer:  denied(http.StatusUnprocessableEntity, metav1.StatusReasonInvalid, `admission webhook "w" denied the request: no`, "spec.containers"),
			want:    appsv1alpha1.ReasonHealthCheckRefused,
			message: `admission webhook "w" denied the request: no`,
		},
		"BadRequest": {
			reason: "This is the code of webhooks that give none. The message is cut.",
			answer: apierrors.NewBadRequest(strings.Repeat("no.\n", 10_000)),
			want:   appsv1alpha1.ReasonHealthCheckRefused, message: "the Pod of the health check: no.",
		},
		"NamespaceTerminating": {
			reason: "It is not the template's fault.",
			answer: terminating,
			want:   appsv1alpha1.ReasonHealthCheckStarting, message: "The namespace is being deleted.",
		},
		"ServerError": {
			reason: "The queue tries again.",
			answer: apierrors.NewInternalError(errors.New("oh")), err: true,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := newCheckup(t)
			c.answer = tc.answer
			if tc.err {
				if _, err := c.checks.Ensure(t.Context(), c, c.app, nil); err == nil {
					t.Error(tc.reason)
				}
				return
			}
			view, again, _ := c.ensure()
			if view.Problem == nil || view.Problem.Reason != tc.want || !strings.Contains(view.Problem.Message, tc.message) {
				t.Fatalf("%s\nwant %s %q, got %+v", tc.reason, tc.want, tc.message, view.Problem)
			}
			if n := len([]rune(view.Problem.Message)); n > bounds.Message || strings.Contains(view.Problem.Message, "\n") {
				t.Errorf("the message has %d characters: %q", n, view.Problem.Message)
			}
			if apierror.IsRejected(tc.answer) && !tc.terminal && again != maxHealthCheckDelay {
				t.Errorf("%s\nwant it to be tried again after the longest delay, got %s", tc.reason, again)
			}
			if terminal := again == 0; terminal != tc.terminal {
				t.Errorf("%s\nlooks again after %s", tc.reason, again)
			}
			c.answer = nil
			c.after(time.Hour)
			_, _, requests := c.ensure()
			if tc.terminal {
				wantRequests(t, tc.reason, requests)
				c.app.Spec.HealthCheck.Template.Spec.Containers[0].Image = "mended"
				_, _, requests = c.ensure()
			}
			wantRequests(t, "What was in the way is gone.", requests, "create "+c.name())
		})
	}
}

func TestHealthCheckPodIsNotMadeForAnApplicationThatIsGone(t *testing.T) {
	c := newCheckup(t)
	for _, uid := range []types.UID{"", "2"} {
		c.uid = uid
		_, _, requests := c.ensure()
		wantRequests(t, "The cache was behind: the API server has none of that UID.", requests)
	}
	now := metav1.Now()
	c.uid = "1"
	c.ensure()
	c.app.DeletionTimestamp = &now
	_, _, requests := c.ensure()
	wantRequests(t, "The Pod goes with its Application, by the garbage collector.", requests)
	c.lose()
	_, _, requests = c.ensure()
	wantRequests(t, "And is not replaced.", requests)
}

func TestHealthCheckPodThatMayNotBeDeleted(t *testing.T) {
	c := newCheckup(t)
	c.ensure()
	c.after(time.Hour)
	c.set(func(p *Record) { p.phase = corev1.PodFailed })
	c.answer = apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "x", errors.New(`User "m" cannot delete resource "pods" in API group ""`))
	view, again, _ := c.ensure()
	if view.Problem == nil || view.Problem.Reason != appsv1alpha1.ReasonHealthCheckForbidden || again != maxHealthCheckDelay {
		t.Errorf("want HealthCheckForbidden, and another look after %s, got %+v after %s", maxHealthCheckDelay, view.Problem, again)
	}
	name := c.name()
	c.app.Spec.HealthCheck = nil
	if view, again, _ = c.ensure(); view.Pod != name || again != maxHealthCheckDelay {
		t.Errorf("a Pod that is not wanted is named until it is gone, got %q, again after %s", view.Pod, again)
	}
}
