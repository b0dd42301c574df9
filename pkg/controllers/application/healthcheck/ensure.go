// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package healthcheck

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	appsv1alpha1 "github.com/masthead-dev/masthead/apis/apps/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/apierror"
	"github.com/masthead-dev/masthead/pkg/condition"
	"github.com/masthead-dev/masthead/pkg/controllers/application/bounds"
)

// Masthead creates a health check's Pod for the Application's author, with its own right to create Pods. Authors of
// Applications in a namespace can thereby run Pods there, as any of its ServiceAccounts and with any of its Secrets,
// without the right to create Pods. An Application does not show who wrote it, so the author's rights cannot be
// checked. Hence Masthead does not require the right to create Pods: it is in a separate file,
// config/samples/workload/health-checks-rights.yaml, for administrators who accept this, or who grant it in some
// namespaces only. Without it a health check is HealthCheckForbidden, and all else works. Pod Security admission and
// policies apply as to any Pod.

const (
	// healthCheckDelay is the time from a Pod's creation until it is replaced if it ended or was lost. It doubles each
	// time, up to maxHealthCheckDelay. A Pod that lasted twice that long is replaced at once.
	healthCheckDelay    = 10 * time.Second
	maxHealthCheckDelay = 5 * time.Minute
)

// Cluster is the interface of health checks to their cluster. Nothing comes from a cache.
type Cluster interface {
	// ApplicationUID is the UID of an Application; empty if it does not exist or is being deleted.
	ApplicationUID(ctx context.Context, key types.NamespacedName) (types.UID, error)

	CreatePod(ctx context.Context, pod *corev1.Pod) error

	// GetPod returns the Pod of a name, regardless of what controls it.
	GetPod(ctx context.Context, key types.NamespacedName) (Record, error)

	// DeletePod deletes this Pod, but not a successor of the same name.
	DeletePod(ctx context.Context, pod Record) error
}

// Checks creates the Pods of the health checks of one cluster. Each cluster needs its own: a cluster restored from
// another one's backup has the same UIDs.
type Checks struct {
	clock clock.PassiveClock

	mu sync.Mutex
	// attempts to create a Pod, by the UID of the Application.
	attempts map[types.UID]healthCheckAttempts
}

// healthCheckAttempts are the attempts for one template.
type healthCheckAttempts struct {
	hash string

	// last is the time of the last attempt, zero if there was none; delay is the time until the next one.
	last  time.Time
	delay time.Duration

	// problem is the result of the last attempt, if it failed. refused reports whether every further attempt would fail
	// the same way.
	problem *condition.Error
	refused bool
}

// New returns the Checks of one cluster.
func New(c clock.PassiveClock) *Checks {
	return &Checks{clock: c, attempts: map[types.UID]healthCheckAttempts{}}
}

// Forget drops the attempts of a deleted Application.
func (h *Checks) Forget(application types.UID) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.attempts, application)
}

func (h *Checks) getAttempts(application types.UID, hash string) healthCheckAttempts {
	h.mu.Lock()
	defer h.mu.Unlock()
	a := h.attempts[application]
	if a.hash != hash {
		// Another template starts over.
		a = healthCheckAttempts{hash: hash}
	}
	return a
}

func (h *Checks) note(application types.UID, a healthCheckAttempts) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.attempts[application] = a
}

// Ensure ensures that an Application has exactly the Pod that its health check asks for. pods are the Pods of health
// checks that its UID controls, from the watch. It returns the Pod's state, whose problem says when to check again if
// nothing happens until then.
func (h *Checks) Ensure(ctx context.Context, cluster Cluster, app *appsv1alpha1.Application, pods []Record) (View, error) {
	want := Pod(app)
	if want == nil {
		h.Forget(app.UID)
		if !app.DeletionTimestamp.IsZero() {
			return View{Ready: corev1.ConditionUnknown}, nil // The Pods are deleted with it.
		}
	}
	attempts := healthCheckAttempts{}
	if want != nil {
		attempts = h.getAttempts(app.UID, want.Labels[appsv1alpha1.TemplateHashLabel])
	}
	plan := planHealthCheck(app.UID, want, pods, attempts, h.clock.Now())
	var errs []error
	for _, p := range plan.remove {
		err := cluster.DeletePod(ctx, p)
		if err == nil || apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
			continue
		}
		if want == nil {
			// The status names it until it is gone.
			plan.view.Pod = p.Key.Name
		}
		if !apierror.IsMissingRight(err) {
			errs = append(errs, fmt.Errorf("cannot delete Pod %q of a health check: %w", p.Key, err))
			continue
		}
		plan.view.Problem = lackingRight("delete", app.Namespace).RetriedAfter(maxHealthCheckDelay)
	}
	if len(errs) > 0 || !plan.create {
		return plan.view, errors.Join(errs...)
	}
	attempts, err := h.create(ctx, cluster, app, want, attempts)
	if err != nil {
		return plan.view, err
	}
	again := attempts.delay
	if attempts.refused {
		again = 0
	}
	plan.view.Problem = cmp.Or(attempts.problem, plan.view.Problem).RetriedAfter(again)
	return plan.view, nil
}

// healthCheckPlan has the actions on the Pods of a health check.
type healthCheckPlan struct {
	remove []Record
	create bool
	view   View
}

// planHealthCheck decides on the actions. A Pod not controlled by the Application's UID is not the Application's,
// regardless of its name and labels.
func planHealthCheck(
	application types.UID, want *corev1.Pod, pods []Record, attempts healthCheckAttempts, now time.Time,
) healthCheckPlan {
	plan := healthCheckPlan{view: View{Ready: corev1.ConditionUnknown}}
	current, others := sortPods(application, want, pods)
	plan.remove = others
	if want == nil {
		return plan
	}
	wait := time.Duration(0)
	if !attempts.last.IsZero() {
		wait = max(attempts.last.Add(attempts.delay).Sub(now), 0)
	}
	plan.view.Pod = want.Name
	switch {
	case current == nil && attempts.refused:
		plan.view.Problem = attempts.problem
	case current == nil:
		creating := condition.NewError(appsv1alpha1.ReasonHealthCheckStarting, fmt.Sprintf("The Pod %q is being created.", want.Name))
		plan.view.Problem, plan.create = cmp.Or(attempts.problem, creating).RetriedAfter(wait), wait == 0
	case current.ended() && !current.deleting:
		// It is kept for inspection until it is replaced.
		plan.view = current.view()
		plan.view.Problem.RetryAfter = wait
		if wait == 0 {
			plan.remove = append(plan.remove, *current)
		}
	default:
		plan.view = current.view()
	}
	return plan
}

// sortPods returns the wanted Pod, if it exists, and the Application's other Pods that are not being deleted.
func sortPods(application types.UID, want *corev1.Pod, pods []Record) (current *Record, others []Record) {
	for i, p := range pods {
		switch {
		case p.Owner != application:
		case want != nil && p.Key.Name == want.Name && p.Key.Namespace == want.Namespace:
			current = &pods[i]
		case !p.deleting:
			others = append(others, p)
		}
	}
	return current, others
}

// create creates the Pod, and records the result. A transient failure is an error, so that the queue retries.
func (h *Checks) create(
	ctx context.Context, cluster Cluster, app *appsv1alpha1.Application, want *corev1.Pod, a healthCheckAttempts,
) (healthCheckAttempts, error) {
	// The garbage collector is slow to collect objects created after their owner was deleted, and a stale UID would make
	// it delete the Pod.
	uid, err := cluster.ApplicationUID(ctx, types.NamespacedName{Namespace: app.Namespace, Name: app.Name})
	if err != nil {
		return a, fmt.Errorf("cannot check whether the Application %s/%s still exists: %w", app.Namespace, app.Name, err)
	}
	if uid != app.UID {
		return a, nil // The watch will report this, too.
	}
	answer := cluster.CreatePod(ctx, want)
	if err = creationError(answer, app); apierrors.IsAlreadyExists(answer) {
		err = holder(ctx, cluster, app, want)
	}
	if a.problem = nil; err != nil && !errors.As(err, &a.problem) {
		return a, err
	}
	a.refused = isAboutFields(answer)
	a = a.tried(h.clock.Now())
	if apierror.IsRejected(answer) {
		// A policy rarely changes within minutes.
		a.delay = maxHealthCheckDelay
	}
	h.note(app.UID, a)
	return a, nil
}

// tried records an attempt.
func (a healthCheckAttempts) tried(now time.Time) healthCheckAttempts {
	switch {
	case a.last.IsZero() || now.Sub(a.last) >= 2*a.delay:
		a.delay = healthCheckDelay
	default:
		a.delay = min(2*a.delay, maxHealthCheckDelay)
	}
	a.last = now
	return a
}

// holder says who holds the Pod's name; nil if it is the Pod itself, which the watch does not show yet.
func holder(ctx context.Context, cluster Cluster, app *appsv1alpha1.Application, want *corev1.Pod) error {
	key := types.NamespacedName{Namespace: want.Namespace, Name: want.Name}
	p, err := cluster.GetPod(ctx, key)
	switch {
	case apierrors.IsNotFound(err):
		return nil // It has just gone.
	case apierror.IsMissingRight(err):
		return lackingRight("get", app.Namespace)
	case err != nil:
		return fmt.Errorf("cannot get Pod %q: %w", key, err)
	case p.Owner == app.UID && !p.deleting:
		return nil
	case p.deleting || p.Owner != "":
		// Its controller, perhaps a deleted Application of the same name, is going away.
		return condition.NewError(
			appsv1alpha1.ReasonHealthCheckStarting,
			fmt.Sprintf("Waiting until another Pod with the name %q is deleted.", want.Name),
		)
	}
	return condition.NewError(
		appsv1alpha1.ReasonHealthCheckRefused,
		fmt.Sprintf("A Pod %q already exists, which does not belong to this Application.", want.Name),
	)
}

// creationError is what an API server's answer to the creation of a Pod means: a condition.Error is shown to users, and
// any other is retried.
func creationError(answer error, app *appsv1alpha1.Application) error {
	switch {
	case answer == nil:
		return nil
	case apierrors.HasStatusCause(answer, corev1.NamespaceTerminatingCause):
		return condition.NewError(appsv1alpha1.ReasonHealthCheckStarting, "The namespace is being deleted.")
	case apierror.IsMissingRight(answer):
		return lackingRight("create", app.Namespace)
	case apierrors.IsForbidden(answer), apierror.IsRejected(answer):
		// Pod Security, a quota, a missing ServiceAccount, a policy: all of these can change without the template.
		return condition.NewError(appsv1alpha1.ReasonHealthCheckRefused,
			condition.Text("The API server refuses the Pod of the health check: "+answer.Error(), bounds.Message))
	}
	return fmt.Errorf("cannot create the Pod of the health check of the Application %s/%s: %w", app.Namespace, app.Name, answer)
}

// isAboutFields reports whether an API server refuses a Pod for what its fields contain. Policies and webhooks refuse
// with the same codes, and say that they deny.
func isAboutFields(err error) bool {
	var answer apierrors.APIStatus
	if !apierrors.IsInvalid(err) || !errors.As(err, &answer) || strings.Contains(err.Error(), "denied") {
		return false
	}
	details := answer.Status().Details
	return details != nil && slices.ContainsFunc(details.Causes, func(c metav1.StatusCause) bool { return c.Field != "" })
}

func lackingRight(verb, namespace string) *condition.Error {
	return &condition.Error{
		Reason:  appsv1alpha1.ReasonHealthCheckForbidden,
		Message: fmt.Sprintf("Masthead lacks the right to %s Pods in the namespace %q, which it needs for health checks only.", verb, namespace),
	}
}
