// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

// Package healthchecktest has shared helpers for tests of health checks.
package healthchecktest

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	appsv1alpha1 "github.com/masthead-dev/masthead/apis/apps/v1alpha1"
)

// Application is an Application with a health check.
func Application(modify ...func(*appsv1alpha1.Application)) *appsv1alpha1.Application {
	app := &appsv1alpha1.Application{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "wordpress", UID: "1"}}
	app.Spec.HealthCheck = &appsv1alpha1.ApplicationHealthCheck{Template: corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "kube-system", Name: "chosen", Finalizers: []string{"example.org/forever"},
			Labels: map[string]string{"app": "wordpress"}, Annotations: map[string]string{"note": "x"},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: "x", UID: "x"}},
		},
		Spec: corev1.PodSpec{
			RestartPolicy: corev1.RestartPolicyOnFailure,
			Containers: []corev1.Container{{
				Name: "check", Image: "busybox",
				ReadinessProbe: &corev1.Probe{ProbeHandler: corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: []string{"true"}}}},
			}},
		},
	}}
	for _, m := range modify {
		m(app)
	}
	return app
}
