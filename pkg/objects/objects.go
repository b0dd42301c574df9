// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

// Package objects has digests and merge patches of objects, an index of values by key, and removes what no reader of an
// object needs.
package objects

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Digest returns a digest of JSON content. Go encodes the keys of maps in order.
func Digest(content any) string {
	data, err := json.Marshal(content)
	if err != nil {
		// Content comes from JSON. What cannot be encoded differs from everything else.
		return fmt.Sprintf("unknown: %v", err)
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:16])
}

// DigestParts returns a digest of texts. It depends on where each of them ends: ("a-b", "c") and ("a", "b-c") differ.
func DigestParts[Text ~string | ~[]byte](parts ...Text) string {
	h := sha256.New()
	for _, p := range parts {
		h.Write([]byte(strconv.Itoa(len(p)) + ":"))
		h.Write([]byte(p))
	}
	return hex.EncodeToString(h.Sum(nil))
}

// Trim removes the managed fields, and the annotation in which kubectl apply stores the whole object: in the metadata
// of a Secret, it is the Secret.
func Trim(obj metav1.Object) {
	obj.SetManagedFields(nil)
	annotations := obj.GetAnnotations()
	if _, ok := annotations[corev1.LastAppliedConfigAnnotation]; ok {
		delete(annotations, corev1.LastAppliedConfigAnnotation)
		obj.SetAnnotations(annotations)
	}
}
