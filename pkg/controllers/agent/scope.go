// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"maps"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/hubaccess"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/ownership"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/propagation"
)

// intent is what the hub shall hold for the claim, given what it holds now, which may be nothing.
func (s *scope) intent(ctx context.Context, place ownership.Place, hub *unstructured.Unstructured) *unstructured.Unstructured {
	var excluded []string
	if s.Class != nil {
		excluded = s.Class.Spec.Agent.ExcludedMetadata
	}
	return propagation.Intent(s.Claim, place, s.marks(ctx, hub), s.Form, excluded...)
}

// marks are the annotations that Masthead sets on the claim's object in the hub: which source it comes from, where that is, and
// with whose rights it was created. Who takes an object over from another cluster, or adopts it, counts as its creator.
func (s *scope) marks(ctx context.Context, hub *unstructured.Unstructured) map[string]string {
	marks := s.Us.Annotations()
	maps.Copy(marks, s.Home.Annotations())
	creator := ""
	if hub != nil && ownership.ResidenceOf(hub).Cluster == s.Home.Cluster {
		creator = hub.GetAnnotations()[fleetv1alpha1.CreatedByAnnotation]
	}
	if access, err := hubaccess.AccessOf(ctx); creator == "" && err == nil {
		creator = access.Key.Mark()
	}
	if creator != "" {
		marks[fleetv1alpha1.CreatedByAnnotation] = creator
	}
	return marks
}
