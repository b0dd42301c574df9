// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package kubeconfig

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/providers/connection"
	"github.com/masthead-dev/masthead/pkg/providers/credentials"
)

func newSecret(change ...func(*corev1.Secret)) *corev1.Secret {
	s := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "ns", Name: "c1", UID: "u1", ResourceVersion: "7",
			Labels: map[string]string{fleetv1alpha1.EnrollLabel: "gold"},
		},
		Data: map[string][]byte{"value": []byte("kubeconfig")},
	}
	for _, fn := range change {
		fn(s)
	}
	return s
}

func newSource(t *testing.T, objects ...client.Object) *Source {
	t.Helper()
	c := fake.NewClientBuilder().WithObjects(objects...).Build()
	s, err := New(Options{Cached: c, Live: c})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestDescribe(t *testing.T) {
	object := connection.ObjectReference{
		GroupVersionKind: corev1.SchemeGroupVersion.WithKind("Secret"), Namespace: "ns", Name: "c1", UID: "u1",
	}
	cases := map[string]struct {
		reason  string
		objects []client.Object
		want    *connection.Enrolment
	}{
		"Gone":     {reason: "There is no such Secret."},
		"NoLabel":  {reason: "Not enrolled.", objects: []client.Object{newSecret(func(s *corev1.Secret) { s.Labels = nil })}},
		"Enrolled": {reason: "The label names the class.", objects: []client.Object{newSecret()}, want: &connection.Enrolment{Object: object, Class: "gold", Ready: true, Secret: `Secret "c1" in the namespace "ns"`, CredentialsVersion: "u1/7"}},
		"Identifier": {
			reason: "The annotation names the cluster.",
			objects: []client.Object{newSecret(func(s *corev1.Secret) {
				s.Annotations = map[string]string{fleetv1alpha1.ClusterIdentifierAnnotation: "blue"}
			})},
			want: &connection.Enrolment{Object: object, Class: "gold", Identifier: "blue", Ready: true, Secret: `Secret "c1" in the namespace "ns"`, CredentialsVersion: "u1/7"},
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
	data := func(kv ...string) func(*corev1.Secret) {
		return func(s *corev1.Secret) {
			s.Data = map[string][]byte{}
			for i := 0; i < len(kv); i += 2 {
				s.Data[kv[i]] = []byte(kv[i+1])
			}
		}
	}
	type want struct {
		kubeconfig, reason string
		key                string
		none               bool
	}
	cases := map[string]struct {
		reason  string
		objects []client.Object
		want    want
	}{
		"Value":      {reason: "The key of Cluster API.", objects: []client.Object{newSecret()}, want: want{kubeconfig: "kubeconfig", key: "value"}},
		"Kubeconfig": {reason: "The key of everybody else.", objects: []client.Object{newSecret(data("kubeconfig", "x"))}, want: want{kubeconfig: "x", key: "kubeconfig"}},
		"BothSame":   {reason: "Both keys say the same.", objects: []client.Object{newSecret(data("kubeconfig", "x", "value", "x"))}, want: want{kubeconfig: "x", key: "kubeconfig"}},
		"BothDiffer": {reason: "Any choice would be a guess.", objects: []client.Object{newSecret(data("kubeconfig", "x", "value", "y"))}, want: want{reason: credentials.ReasonAmbiguous}},
		"Neither":    {reason: "There is no kubeconfig.", objects: []client.Object{newSecret(data("config", "x"))}, want: want{reason: credentials.ReasonEmpty}},
		"Gone":       {reason: "There is no Secret.", want: want{none: true}},
		"Recreated":  {reason: "It is another enrolment now.", objects: []client.Object{newSecret(func(s *corev1.Secret) { s.UID = "u2" })}, want: want{none: true}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			e := &connection.Enrolment{Object: connection.ObjectReference{Namespace: "ns", Name: "c1", UID: "u1"}}
			raw, err := newSource(t, tc.objects...).Kubeconfig(t.Context(), e)
			got := want{kubeconfig: string(raw.Data), key: raw.Key, none: errors.Is(err, connection.ErrNoCredentials)}
			if invalid, ok := errors.AsType[*credentials.InvalidError](err); ok {
				got.reason = invalid.Reason
			}
			if diff := cmp.Diff(tc.want, got, cmp.AllowUnexported(want{})); diff != "" {
				t.Errorf("%s\n-want +got:\n%s\nerror: %v", tc.reason, diff, err)
			}
		})
	}
}
