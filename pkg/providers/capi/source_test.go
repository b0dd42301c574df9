// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package capi

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/providers/connection"
	"github.com/masthead-dev/masthead/pkg/providers/credentials"
)

var created = metav1.NewTime(time.Unix(1000, 0))

func newCluster(change ...func(*clusterv1.Cluster)) *clusterv1.Cluster {
	c := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{
		Namespace: "ns", Name: "c1", UID: "u1", CreationTimestamp: created,
		Labels: map[string]string{fleetv1alpha1.EnrollLabel: "true"},
	}}
	c.Spec.ControlPlaneRef = clusterv1.ContractVersionedObjectReference{APIGroup: "g", Kind: "K", Name: "c1"}
	c.Spec.ControlPlaneEndpoint = clusterv1.APIEndpoint{Host: "10.0.0.1", Port: 6443}
	c.Status.Initialization.ControlPlaneInitialized = new(true)
	for _, fn := range change {
		fn(c)
	}
	return c
}

func newSecret(change ...func(*corev1.Secret)) *corev1.Secret {
	s := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "ns", Name: "c1-kubeconfig", UID: "s1", ResourceVersion: "7",
			Labels: map[string]string{clusterv1.ClusterNameLabel: "c1"},
		},
		Type: clusterv1.ClusterSecretType,
		Data: map[string][]byte{"value": []byte("kubeconfig")},
	}
	for _, fn := range change {
		fn(s)
	}
	return s
}

func newSource(t *testing.T, objects ...client.Object) *Source {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, clusterv1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).Build()
	s, err := New(Options{Cached: c, Live: c})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestDescribe(t *testing.T) {
	type enrolment = connection.Enrolment
	enrolled := func(change ...func(*enrolment)) *enrolment {
		e := &enrolment{
			Object: connection.ObjectReference{
				GroupVersionKind: clusterv1.GroupVersion.WithKind("Cluster"),
				Namespace:        "ns", Name: "c1", UID: "u1", CreationTimestamp: created,
			},
			Class: "default", Ready: true, Endpoint: "10.0.0.1:6443", CredentialsVersion: "s1/7",
			Secret: `Secret "c1-kubeconfig" with the label cluster.x-k8s.io/cluster-name=c1 in the namespace "ns"`,
		}
		for _, fn := range change {
			fn(e)
		}
		return e
	}
	notReady := func(message string) func(*enrolment) {
		return func(e *enrolment) {
			e.Ready, e.NotReadyReason, e.NotReadyMessage = false, fleetv1alpha1.ReasonNotReady, message
		}
	}
	label := func(v string) func(*clusterv1.Cluster) {
		return func(c *clusterv1.Cluster) { c.Labels[fleetv1alpha1.EnrollLabel] = v }
	}
	cases := map[string]struct {
		reason  string
		objects []client.Object
		want    *enrolment
	}{
		"Gone":        {reason: "There is no such Cluster.", objects: []client.Object{newSecret()}},
		"NoLabel":     {reason: "Not enrolled.", objects: []client.Object{newCluster(func(c *clusterv1.Cluster) { c.Labels = nil }), newSecret()}},
		"LabelFalse":  {reason: "Not enrolled, in words.", objects: []client.Object{newCluster(label("false")), newSecret()}},
		"LabelEmpty":  {reason: "No class is named.", objects: []client.Object{newCluster(label("")), newSecret()}},
		"Enrolled":    {reason: "True means the default class.", objects: []client.Object{newCluster(), newSecret()}, want: enrolled()},
		"Class":       {reason: "Any other value names a class.", objects: []client.Object{newCluster(label("gold")), newSecret()}, want: enrolled(func(e *enrolment) { e.Class = "gold" })},
		"NoSecret":    {reason: "Enrolled, and without credentials.", objects: []client.Object{newCluster()}, want: enrolled(func(e *enrolment) { e.CredentialsVersion = "" })},
		"OtherSecret": {reason: "A Secret that another Cluster's label is on is not this one's.", objects: []client.Object{newCluster(), newSecret(func(s *corev1.Secret) { s.Labels[clusterv1.ClusterNameLabel] = "c2" })}, want: enrolled(func(e *enrolment) { e.CredentialsVersion = "" })},
		"Identifier": {
			reason: "The annotation names the cluster.",
			objects: []client.Object{newCluster(func(c *clusterv1.Cluster) {
				c.Annotations = map[string]string{fleetv1alpha1.ClusterIdentifierAnnotation: "blue"}
			}), newSecret()},
			want: enrolled(func(e *enrolment) { e.Identifier = "blue" }),
		},
		"PausedBySpec":       {reason: "Cluster API's own field.", objects: []client.Object{newCluster(func(c *clusterv1.Cluster) { c.Spec.Paused = new(true) }), newSecret()}, want: enrolled(func(e *enrolment) { e.Paused = true })},
		"PausedByAnnotation": {reason: "Cluster API's own annotation, with any value.", objects: []client.Object{newCluster(func(c *clusterv1.Cluster) { c.Annotations = map[string]string{clusterv1.PausedAnnotation: ""} }), newSecret()}, want: enrolled(func(e *enrolment) { e.Paused = true })},
		"Deleting": {
			reason: "It stays enrolled until it is gone.",
			objects: []client.Object{newCluster(func(c *clusterv1.Cluster) {
				c.DeletionTimestamp, c.Finalizers = new(created), []string{clusterv1.ClusterFinalizer}
			}), newSecret()},
			want: enrolled(func(e *enrolment) { e.Deleting = true }),
		},
		"NotInitialized": {
			reason:  "Cluster API knows the control plane, and that it is not up.",
			objects: []client.Object{newCluster(func(c *clusterv1.Cluster) { c.Status.Initialization.ControlPlaneInitialized = nil }), newSecret()},
			want:    enrolled(notReady("Cluster API has not reported yet that the control plane is initialized")),
		},
		"External": {
			reason: "No controller reports the initialization of a control plane that is managed elsewhere.",
			objects: []client.Object{newCluster(func(c *clusterv1.Cluster) {
				c.Status.Initialization = clusterv1.ClusterInitializationStatus{InfrastructureProvisioned: new(true)}
				c.Spec.ControlPlaneRef = clusterv1.ContractVersionedObjectReference{}
			}), newSecret()},
			want: enrolled(),
		},
		"ExternalWithoutInfrastructure": {
			reason: "It may not be there yet.",
			objects: []client.Object{newCluster(func(c *clusterv1.Cluster) {
				c.Status.Initialization = clusterv1.ClusterInitializationStatus{}
				c.Spec.ControlPlaneRef = clusterv1.ContractVersionedObjectReference{}
			}), newSecret()},
			want: enrolled(notReady("Cluster API has not reported yet that the infrastructure is provisioned")),
		},
		"ExternalWithoutEndpoint": {
			reason: "Nothing says where it is.",
			objects: []client.Object{newCluster(func(c *clusterv1.Cluster) {
				c.Status.Initialization = clusterv1.ClusterInitializationStatus{}
				c.Spec.ControlPlaneRef = clusterv1.ContractVersionedObjectReference{}
				c.Spec.ControlPlaneEndpoint = clusterv1.APIEndpoint{}
			}), newSecret()},
			want: enrolled(notReady("The Cluster has neither an initialized control plane nor a control plane endpoint yet"), func(e *enrolment) { e.Endpoint = "" }),
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := newSource(t, tc.objects...).Describe(t.Context(), types.NamespacedName{Namespace: "ns", Name: "c1"})
			if errors.Is(err, connection.ErrNotEnrolled) != (tc.want == nil) || tc.want != nil && err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\n-want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestKubeconfig(t *testing.T) {
	type want struct {
		kubeconfig, reason string
		at                 connection.SecretKey
		none               bool
	}
	at := connection.SecretKey{Namespace: "ns", Name: "c1-kubeconfig", Key: "value"}
	cases := map[string]struct {
		reason  string
		objects []client.Object
		want    want
	}{
		"Ours":       {reason: "The Secret of the Cluster.", objects: []client.Object{newSecret()}, want: want{kubeconfig: "kubeconfig", at: at}},
		"Opaque":     {reason: "Made by hand for an external control plane.", objects: []client.Object{newSecret(func(s *corev1.Secret) { s.Type = corev1.SecretTypeOpaque })}, want: want{kubeconfig: "kubeconfig", at: at}},
		"None":       {reason: "There is no Secret.", want: want{none: true}},
		"OtherLabel": {reason: "It belongs to another Cluster.", objects: []client.Object{newSecret(func(s *corev1.Secret) { s.Labels = nil })}, want: want{reason: credentials.ReasonNotOurs}},
		"OtherType":  {reason: "A token of a ServiceAccount is no kubeconfig.", objects: []client.Object{newSecret(func(s *corev1.Secret) { s.Type = corev1.SecretTypeServiceAccountToken })}, want: want{reason: credentials.ReasonNotOurs}},
		"NoKey":      {reason: "The contract names the key.", objects: []client.Object{newSecret(func(s *corev1.Secret) { s.Data = map[string][]byte{"kubeconfig": []byte("x")} })}, want: want{reason: credentials.ReasonEmpty}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			raw, err := newSource(t, tc.objects...).Kubeconfig(t.Context(), &connection.Enrolment{Object: connection.ObjectReference{Namespace: "ns", Name: "c1"}})
			got := want{kubeconfig: string(raw.Data), at: raw.SecretKey, none: errors.Is(err, connection.ErrNoCredentials)}
			if invalid, ok := errors.AsType[*credentials.InvalidError](err); ok {
				got.reason = invalid.Reason
			}
			if diff := cmp.Diff(tc.want, got, cmp.AllowUnexported(want{})); diff != "" {
				t.Errorf("%s\n-want +got:\n%s\nerror: %v", tc.reason, diff, err)
			}
		})
	}
}

func TestKeysOfSecret(t *testing.T) {
	cases := map[string]struct {
		reason      string
		name, label string
		want        []connection.Key
	}{
		"Kubeconfig": {reason: "It wakes its Cluster.", name: "c1-kubeconfig", label: "c1", want: []connection.Key{{Source: "capi", Namespace: "ns", Name: "c1"}}},
		"CA":         {reason: "Cluster API has other Secrets with the label.", name: "c1-ca", label: "c1"},
		"OtherLabel": {reason: "The name alone is not enough.", name: "c1-kubeconfig", label: "c2"},
		"NoName":     {reason: "No Cluster has an empty name.", name: "-kubeconfig"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			m := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: tc.name, Labels: map[string]string{clusterv1.ClusterNameLabel: tc.label}}}
			if diff := cmp.Diff(tc.want, keysOfSecret(m)); diff != "" {
				t.Errorf("%s\n-want +got:\n%s", tc.reason, diff)
			}
		})
	}
}
