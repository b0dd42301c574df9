// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"encoding/json"
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

func TestStatus(t *testing.T) {
	pods, fails := schema.GroupResource{Resource: "pods"}, errors.New("the hub is away")
	const want = `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p","namespace":"n","uid":"u"},"status":{"phase":"Running"}}`
	for _, tc := range []struct {
		reason      string
		answer, err error
		applied     bool
	}{
		{"The status is written.", nil, nil, true},
		{"The object was deleted.", apierrors.NewNotFound(pods, "p"), nil, false},
		{"The object was replaced.", apierrors.NewConflict(pods, "p", fails), nil, false},
		{"Another answer is an error.", fails, fails, false},
	} {
		var sent []byte
		var with client.SubResourceApplyOptions
		c := fake.NewClientBuilder().WithInterceptorFuncs(interceptor.Funcs{SubResourceApply: func(
			_ context.Context, _ client.Client, _ string, config runtime.ApplyConfiguration, opts ...client.SubResourceApplyOption,
		) (err error) {
			with.ApplyOpts(opts)
			if sent, err = json.Marshal(config); err != nil {
				t.Fatal(err)
			}
			return tc.answer
		}}).Build()
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "p", UID: "u", ResourceVersion: "1"}}
		gvk := corev1.SchemeGroupVersion.WithKind("Pod")
		applied, err := Status(t.Context(), c, gvk, pod, &corev1.PodStatus{Phase: corev1.PodRunning}, "m")
		if applied != tc.applied || !errors.Is(err, tc.err) {
			t.Errorf("%s Want %v and error %v, got %v and %v", tc.reason, tc.applied, tc.err, applied, err)
		}
		if string(sent) != want || with.FieldManager != "m" || !ptr.Deref(with.Force, false) {
			t.Errorf("%s Want %s by m, with force; got %s with %+v", tc.reason, want, sent, with)
		}
	}
}
