// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/propagation"
)

// conflictsWithRecord is whether an API server refused an apply because somebody else wrote the record, or applied annotations
// without content, which nobody else may add to by an apply.
func conflictsWithRecord(err error) bool {
	return slices.ContainsFunc(propagation.ConflictCauses(err), func(c metav1.StatusCause) bool {
		return c.Field == ".metadata.annotations" || strings.HasSuffix(c.Field, "."+fleetv1alpha1.HubObjectAnnotation)
	})
}
