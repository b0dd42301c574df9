// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1_test

import (
	"maps"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appsv1alpha1 "github.com/masthead-dev/masthead/apis/apps/v1alpha1"
)

func container(fields object) object {
	c := object{"name": "check", "image": "busybox"}
	maps.Copy(c, fields)
	return c
}

func checking(podSpec object) object {
	return with(object{"healthCheck": object{"template": object{"spec": podSpec}}})
}

// TestValidationOfHealthChecks verifies the KEP's rule: the template is a valid Pod with a readiness check.
func TestValidationOfHealthChecks(t *testing.T) {
	probe := object{"exec": object{"command": []any{"true"}}}
	const needsProbe = "a container of the health check must have a readinessProbe"
	validate(t, map[string]validationCase{
		"Probed":         {reason: "One container with a readiness probe is enough.", spec: checking(object{"containers": []any{container(object{"readinessProbe": probe})}})},
		"OneOfTwo":       {reason: "A side car needs none.", spec: checking(object{"containers": []any{container(nil), object{"name": "probed", "image": "b", "readinessProbe": probe}}})},
		"NoProbe":        {reason: "Without one the Pod is ready as soon as it runs.", spec: checking(object{"containers": []any{container(nil)}}), want: needsProbe},
		"OtherProbe":     {reason: "A liveness probe says nothing about readiness.", spec: checking(object{"containers": []any{container(object{"livenessProbe": probe})}}), want: needsProbe},
		"InitContainer":  {reason: "Nor does the probe of a container that ends before the others start.", spec: checking(object{"initContainers": []any{object{"name": "init", "image": "b", "readinessProbe": probe}}, "containers": []any{container(nil)}}), want: needsProbe},
		"NoContainers":   {reason: "A Pod has containers.", spec: checking(object{"containers": []any{}}), want: needsProbe},
		"EmptyPod":       {reason: "A Pod has containers.", spec: checking(object{}), want: "containers: Required value"},
		"NoPod":          {reason: "A template has a Pod.", spec: with(object{"healthCheck": object{"template": object{}}}), want: needsProbe},
		"NoTemplate":     {reason: "A health check has a template.", spec: with(object{"healthCheck": object{}}), want: "spec.healthCheck.template: Required value"},
		"Misspelt":       {reason: "What is misspelt is not ignored.", spec: checking(object{"containers": []any{container(object{"readynessProbe": probe, "readinessProbe": probe})}}), want: "unknown field"},
		"NoName":         {reason: "Containers have names.", spec: checking(object{"containers": []any{object{"image": "b", "readinessProbe": probe}}}), want: "name: Required value"},
		"SameName":       {reason: "Containers have names of their own.", spec: checking(object{"containers": []any{container(object{"readinessProbe": probe}), container(nil)}}), want: "Duplicate value"},
		"ProbeOfNothing": {reason: "A probe checks something.", spec: checking(object{"containers": []any{container(object{"readinessProbe": object{"periodSeconds": int64(5)}})}}), want: "a readinessProbe says what is checked"},
		"ProbeOfTwo":     {reason: "And one thing only.", spec: checking(object{"containers": []any{container(object{"readinessProbe": object{"exec": object{"command": []any{"true"}}, "tcpSocket": object{"port": int64(80)}}})}}), want: "a readinessProbe says what is checked"},
		"ProbeOfGRPC":    {reason: "Each kind of check will do.", spec: checking(object{"containers": []any{container(object{"readinessProbe": object{"grpc": object{"port": int64(80)}}})}})},
		"NoImage":        {reason: "A container has an image.", spec: checking(object{"containers": []any{object{"name": "check", "readinessProbe": probe}}}), want: "must have an image"},
		"RestartPolicy":  {reason: "A Pod has one of three.", spec: checking(object{"restartPolicy": "Sometimes", "containers": []any{container(object{"readinessProbe": probe})}}), want: "the restartPolicy of a Pod is"},
		"Ephemeral":      {reason: "They are added to Pods that run.", spec: checking(object{"ephemeralContainers": []any{object{"name": "debug", "image": "b"}}, "containers": []any{container(object{"readinessProbe": probe})}}), want: "no ephemeralContainers"},
		"PortAsText":     {reason: "A port is a number.", spec: checking(object{"containers": []any{container(object{"readinessProbe": probe, "ports": []any{object{"containerPort": "http"}}})}}), want: "must be of type integer"},
	})
}

// TestHealthCheckTemplateKeepsWhatItSays reads back what was written: a schema that embeds another one can drop or
// default fields, and the Pod would not be the requested one.
func TestHealthCheckTemplateKeepsWhatItSays(t *testing.T) {
	app := &appsv1alpha1.Application{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "template"},
		Spec: appsv1alpha1.ApplicationSpec{HealthCheck: &appsv1alpha1.ApplicationHealthCheck{Template: corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{
				Labels:      map[string]string{"app.kubernetes.io/name": "check"},
				Annotations: map[string]string{"sidecar.istio.io/inject": "false"},
			},
			Spec: corev1.PodSpec{
				ServiceAccountName: "checker",
				Tolerations:        []corev1.Toleration{{Key: "dedicated", Operator: corev1.TolerationOpExists}},
				SecurityContext:    &corev1.PodSecurityContext{RunAsNonRoot: new(true)},
				Containers: []corev1.Container{{
					Name: "check", Image: "curlimages/curl:8.10.1", Command: []string{"sleep", "infinity"},
					Ports: []corev1.ContainerPort{{ContainerPort: 53, Protocol: corev1.ProtocolUDP}},
					ReadinessProbe: &corev1.Probe{
						ProbeHandler:  corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: []string{"curl", "-fsS", "http://web"}}},
						PeriodSeconds: 5,
					},
				}},
			},
		}}},
	}
	want := app.Spec.HealthCheck.DeepCopy()
	if err := workload.Create(t.Context(), app); err != nil {
		t.Fatal(err)
	}
	got := &appsv1alpha1.Application{}
	if err := workload.Get(t.Context(), client.ObjectKeyFromObject(app), got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got.Spec.HealthCheck); diff != "" {
		t.Errorf("-written, +read:\n%s", diff)
	}
}

// TestHealthCheckTemplateDefaults verifies the one default of a Pod's schema, which the API server needs: the protocol
// is a part of the key of a port.
func TestHealthCheckTemplateDefaults(t *testing.T) {
	app := application("defaults", checking(object{"containers": []any{container(object{
		"readinessProbe": object{"exec": object{"command": []any{"true"}}}, "ports": []any{object{"containerPort": int64(80)}},
	})}}))
	if err := workload.Create(t.Context(), app, client.FieldValidation(metav1.FieldValidationStrict)); err != nil {
		t.Fatal(err)
	}
	got := &appsv1alpha1.Application{}
	if err := workload.Get(t.Context(), client.ObjectKeyFromObject(app), got); err != nil {
		t.Fatal(err)
	}
	want := []corev1.ContainerPort{{ContainerPort: 80, Protocol: corev1.ProtocolTCP}}
	if diff := cmp.Diff(want, got.Spec.HealthCheck.Template.Spec.Containers[0].Ports); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
}
