// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestDigest: digests are in annotations and in the names of objects, so they must not change with a version.
func TestDigest(t *testing.T) {
	if got := Digest(map[string]any{"b": int64(1), "a": "x"}); got != "cdab067e9f3beb32d1252cfd63e49259" {
		t.Errorf("got %s", got)
	}
	if got := Digest(map[string]any{"a": func() {}}); got != "unknown: json: unsupported type: func()" {
		t.Errorf("want no digest of what is no JSON, got %s", got)
	}
	if got := DigestParts("a-b", "c"); got != DigestParts([]byte("a-b"), []byte("c")) || got == DigestParts("a", "b-c") {
		t.Errorf("want the ends of the parts to count, and not their type, got %s", got)
	}
	if got := DigestParts("a"); got[:12] != "4162fddd39a3" {
		t.Errorf("got %s", got)
	}
}

func TestTrim(t *testing.T) {
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{
		Annotations:   map[string]string{corev1.LastAppliedConfigAnnotation: "{}", "a": "b"},
		ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "kubectl"}},
	}}
	Trim(secret)
	if len(secret.ManagedFields) != 0 || len(secret.Annotations) != 1 || secret.Annotations["a"] != "b" {
		t.Errorf("got %v", secret.ObjectMeta)
	}
}
