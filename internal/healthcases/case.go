// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package healthcases

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// A Case is an object and its expected health.
type Case struct {
	// Name is the group, the kind and the file or the number of the case.
	Name string

	Object *unstructured.Unstructured

	// Want is the expected health: Healthy, Suspended, Progressing, Unknown, Missing or Degraded.
	Want string

	// StatusExpected says whether the kind has a status subresource.
	StatusExpected bool
}
