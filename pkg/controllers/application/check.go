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

// check ensures that the Application has exactly the Pod that its health check asks for, and returns its state. Pods
// are looked up each time, even without a health check: one may just have been removed before a status named its Pod.
func (s *scope) check(ctx context.Context) (healthcheck.View, error) {
	before := healthcheck.View{Pod: s.app.Status.HealthCheckPod, Ready: corev1.ConditionUnknown}
	if s.visibility.ObserveOnly {
		if s.app.Spec.HealthCheck != nil {
			before.Problem = condition.NewError(
				appsv1alpha1.ReasonObserveOnly,
				"The EnrollmentClass of the cluster allows Masthead to observe only.",
			)
		}
		return before, nil
	}
	state, _ := s.w.Watcher.State(record.HealthCheckPodKind)
	pods, err := s.w.Pods(s.app.UID)
	if known := err == nil && state == kindwatch.StateSynced; !known {
		if s.app.Spec.HealthCheck != nil {
			before.Syncing = state == kindwatch.StateSyncing || state == kindwatch.StateSynced
			before.Problem = podsProblem(state)
		}
		return before, nil // It may still exist.
	}
	view, err := s.w.HealthChecks.Ensure(ctx, podClient{s}, s.app, pods)
	switch {
	case errors.Is(err, errSuperseded):
		return view, nil // It is not reported.
	case err != nil:
		return view, fmt.Errorf("cannot check the health of Application %q in cluster %q: %w", s.key, s.w.Name, err)
	}
	return view, again(view.Problem)
}

func podsProblem(state kindwatch.State) *condition.Error {
	switch state {
	case kindwatch.StateForbidden:
		return &condition.Error{
			Reason:  appsv1alpha1.ReasonHealthCheckForbidden,
			Message: "The cluster does not let Masthead list and watch Pods, which it needs for health checks only.",
		}
	case kindwatch.StateTooLarge:
		return &condition.Error{
			Reason:  appsv1alpha1.ReasonHealthCheckRefused,
			Message: "The cluster has more Pods of health checks than Masthead keeps.",
		}
	case kindwatch.StateStale:
		return &condition.Error{
			Reason:  appsv1alpha1.ReasonHealthCheckStarting,
			Message: "The cluster has not let Masthead list and watch Pods for some minutes.",
		}
	default:
		return &condition.Error{Reason: appsv1alpha1.ReasonHealthCheckStarting, Message: "The Pods of health checks have not been read yet."}
	}
}

// podClient is the Cluster for a health check.
type podClient struct{ s *scope }

var _ healthcheck.Cluster = podClient{}

func (c podClient) pods(namespace string) dynamic.ResourceInterface {
	return c.s.w.Client.Resource(record.HealthCheckPodKind.GroupVersionResource()).Namespace(namespace)
}

// ApplicationUID implements healthcheck.Cluster.
func (c podClient) ApplicationUID(ctx context.Context, key record.ApplicationKey) (types.UID, error) {
	return c.s.w.LiveUID(ctx, key)
}

// CreatePod implements healthcheck.Cluster. If superseded, it creates none.
func (c podClient) CreatePod(ctx context.Context, pod *corev1.Pod) error {
	if c.s.superseded() {
		return errSuperseded
	}
	ctx, cancel := context.WithTimeout(ctx, c.s.r.requestTimeout)
	defer cancel()
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(pod)
	if err != nil {
		return err
	}
	delete(fields, "status")
	options := metav1.CreateOptions{FieldManager: c.s.r.fieldManagerIn(c.s.w)}
	_, err = c.pods(pod.Namespace).Create(ctx, &unstructured.Unstructured{Object: fields}, options)
	if err == nil {
		c.s.r.metrics.wrote(c.s.w.Name, writeHealthCheck)
	}
	return err
}

// GetPod implements healthcheck.Cluster.
func (c podClient) GetPod(ctx context.Context, key types.NamespacedName) (healthcheck.Record, error) {
	ctx, cancel := context.WithTimeout(ctx, c.s.r.requestTimeout)
	defer cancel()
	live, err := c.pods(key.Namespace).Get(ctx, key.Name, metav1.GetOptions{})
	if err != nil {
		return healthcheck.Record{}, err
	}
	pod, _ := healthcheck.Reduce(live)
	return pod, nil
}

// DeletePod implements healthcheck.Cluster. If superseded, it deletes none.
func (c podClient) DeletePod(ctx context.Context, pod healthcheck.Record) error {
	if c.s.superseded() {
		return errSuperseded
	}
	ctx, cancel := context.WithTimeout(ctx, c.s.r.requestTimeout)
	defer cancel()
	err := c.pods(pod.Key.Namespace).Delete(ctx, pod.Key.Name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &pod.UID}})
	if err == nil {
		c.s.r.metrics.wrote(c.s.w.Name, writeHealthCheck)
	}
	return err
}
