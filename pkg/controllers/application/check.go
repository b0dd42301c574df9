// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package application

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	appsv1alpha1 "github.com/masthead-dev/masthead/apis/apps/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/condition"
	"github.com/masthead-dev/masthead/pkg/controllers/application/healthcheck"
	"github.com/masthead-dev/masthead/pkg/controllers/application/record"
	"github.com/masthead-dev/masthead/pkg/kindwatch"
)

// check ensures that the Application has exactly the Pod that its health check asks for, and records its state. Pods
// are looked up each time, even without a health check: one may just have been removed before a status named its Pod.
func (p *pass) check(ctx context.Context) {
	p.healthCheck = healthcheck.View{Ready: corev1.ConditionUnknown}
	if p.sight.ObserveOnly {
		p.healthCheck.Pod = p.app.Status.HealthCheckPod
		if p.app.Spec.HealthCheck != nil {
			p.healthCheck.Problem = &condition.Error{Reason: appsv1alpha1.ReasonObserveOnly, Message: "The EnrollmentClass of the cluster allows Masthead to observe only."}
		}
		return
	}
	state, _ := p.w.Watcher.State(record.HealthCheckPodKind)
	pods, err := p.w.Pods(p.app.UID)
	if err != nil || state != kindwatch.StateSynced {
		// It is not known whether the Pod still exists.
		p.healthCheck.Pod = p.app.Status.HealthCheckPod
		if p.app.Spec.HealthCheck != nil {
			p.healthCheck.Syncing = state == kindwatch.StateSyncing || state == kindwatch.StateSynced
			p.healthCheck.Problem = podsProblem(state)
		}
		return
	}
	view, err := p.w.HealthChecks.Ensure(ctx, podClient{p}, p.app, pods)
	if errors.Is(err, errSuperseded) {
		return
	}
	if err != nil {
		p.fail(fmt.Errorf("cannot check the health of Application %q in cluster %q: %w", p.key, p.w.Name, err))
	}
	p.healthCheck = view
	if view.Problem != nil && view.Problem.RetryAfter > 0 {
		p.lookAgain(view.Problem.RetryAfter)
	}
}

func podsProblem(state kindwatch.State) *condition.Error {
	switch state {
	case kindwatch.StateForbidden:
		return &condition.Error{Reason: appsv1alpha1.ReasonHealthCheckForbidden, Message: "The cluster does not let Masthead list and watch Pods, which it needs for health checks only."}
	case kindwatch.StateTooLarge:
		return &condition.Error{Reason: appsv1alpha1.ReasonHealthCheckRefused, Message: "The cluster has more Pods of health checks than Masthead keeps."}
	case kindwatch.StateStale:
		return &condition.Error{Reason: appsv1alpha1.ReasonHealthCheckStarting, Message: "The cluster has not let Masthead list and watch Pods for some minutes."}
	default:
		return &condition.Error{Reason: appsv1alpha1.ReasonHealthCheckStarting, Message: "The Pods of health checks have not been read yet."}
	}
}

// podClient is the Cluster for the health check of a pass.
type podClient struct{ p *pass }

var _ healthcheck.Cluster = podClient{}

func (c podClient) pods(namespace string) dynamic.ResourceInterface {
	return c.p.w.Client.Resource(record.HealthCheckPodKind.GroupVersionResource()).Namespace(namespace)
}

// ApplicationUID implements healthcheck.Cluster.
func (c podClient) ApplicationUID(ctx context.Context, key record.ApplicationKey) (types.UID, error) {
	return c.p.w.LiveUID(ctx, key)
}

// CreatePod implements healthcheck.Cluster. A superseded pass creates none.
func (c podClient) CreatePod(ctx context.Context, pod *corev1.Pod) error {
	if c.p.superseded() {
		return errSuperseded
	}
	ctx, cancel := context.WithTimeout(ctx, c.p.r.requestTimeout)
	defer cancel()
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(pod)
	if err != nil {
		return err
	}
	delete(fields, "status")
	_, err = c.pods(pod.Namespace).Create(ctx, &unstructured.Unstructured{Object: fields}, metav1.CreateOptions{FieldManager: c.p.r.fieldManagerIn(c.p.w)})
	if err == nil {
		c.p.r.metrics.wrote(c.p.w.Name, writeHealthCheck)
	}
	return err
}

// GetPod implements healthcheck.Cluster.
func (c podClient) GetPod(ctx context.Context, key types.NamespacedName) (healthcheck.Record, error) {
	ctx, cancel := context.WithTimeout(ctx, c.p.r.requestTimeout)
	defer cancel()
	live, err := c.pods(key.Namespace).Get(ctx, key.Name, metav1.GetOptions{})
	if err != nil {
		return healthcheck.Record{}, err
	}
	pod, _ := healthcheck.Reduce(live)
	return pod, nil
}

// DeletePod implements healthcheck.Cluster. A superseded pass deletes none.
func (c podClient) DeletePod(ctx context.Context, pod healthcheck.Record) error {
	if c.p.superseded() {
		return errSuperseded
	}
	ctx, cancel := context.WithTimeout(ctx, c.p.r.requestTimeout)
	defer cancel()
	err := c.pods(pod.Key.Namespace).Delete(ctx, pod.Key.Name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &pod.UID}})
	if err == nil {
		c.p.r.metrics.wrote(c.p.w.Name, writeHealthCheck)
	}
	return err
}
