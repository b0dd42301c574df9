// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package discovery

import (
	"context"
	"fmt"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/condition"
	"github.com/masthead-dev/masthead/pkg/kindwatch"
	"github.com/masthead-dev/masthead/pkg/multicluster"
)

// notServed returns why the cluster does not serve a kind whose definition it has. For a while that is expected, and no
// problem.
func (p *pass) notServed(ctx context.Context, k mirroredKind, kind kindwatch.Kind) error {
	if state, _ := p.w.watcher.State(kind); state != kindwatch.StateNotServed {
		// It is being found out.
		return condition.PendingError{}
	}
	if left := p.w.awaits(kind, p.clock.Now()); left > 0 {
		return condition.PendingError{After: left}
	}
	crd, err := p.definition(ctx, k)
	if err != nil {
		return err
	}
	return condition.NewError(fleetv1alpha1.ReasonDefinitionNotServed, fmt.Sprintf(
		"The CustomResourceDefinition %q exists in the cluster, but the API server does not serve it: %s", k.crd(), whyNotServed(crd)))
}

// whyNotServed summarizes the status of a definition for users.
func whyNotServed(crd *unstructured.Unstructured) string {
	for _, conditionType := range []apiextensionsv1.CustomResourceDefinitionConditionType{apiextensionsv1.NamesAccepted, apiextensionsv1.Established} {
		if c, _ := condition.Find(crd, string(conditionType)); c.Status == metav1.ConditionFalse && c.Message != "" {
			return multicluster.BoundedText(fmt.Sprintf("%s is False: %s", conditionType, c.Message))
		}
	}
	return "its status does not say why."
}
