// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/condition"
	"github.com/masthead-dev/masthead/pkg/hubidentity"
)

const (
	definitionsPath = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
	markerPath      = definitionsPath + "/" + fleetv1alpha1.HubMarkerName

	// asMetadata requests metadata only. The full object is large and not needed.
	asMetadata = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
)

// Marker reads the metadata of the marker; nil if there is none.
func (p Prober) Marker(ctx context.Context, token string) (*metav1.ObjectMeta, *condition.Error) {
	code, body, err := p.send(ctx, question{method: http.MethodGet, path: markerPath, accept: asMetadata}, token)
	switch {
	case err != nil:
		return nil, p.explain(err)
	case code == http.StatusNotFound:
		return nil, nil
	case code != http.StatusOK:
		return nil, markerRefused("get", code)
	}
	obj := metav1.PartialObjectMetadata{}
	if json.Unmarshal(body, &obj) != nil || obj.Name != fleetv1alpha1.HubMarkerName {
		return nil, condition.NewError(fleetv1alpha1.ReasonProbeFailed, fmt.Sprintf("The API server's answer to a request for the CustomResourceDefinition %q is not such an object",
			fleetv1alpha1.HubMarkerName))
	}
	return &obj.ObjectMeta, nil
}

// WriteMarker creates the marker, or replaces the one that was read. It returns false if the marker changed
// concurrently.
func (p Prober) WriteMarker(ctx context.Context, token string, m hubidentity.Marker, have *metav1.ObjectMeta) (bool, *condition.Error) {
	body, err := json.Marshal(m.Object(have))
	if err != nil {
		return false, condition.NewError(fleetv1alpha1.ReasonProbeFailed, "The marker of the hub cannot be encoded")
	}
	method, path, verb := http.MethodPost, definitionsPath, "create"
	if have != nil {
		method, path, verb = http.MethodPut, markerPath, "update"
	}
	code, _, err := p.send(ctx, question{method: method, path: path, accept: asMetadata, body: body}, token)
	switch {
	case err != nil:
		return false, p.explain(err)
	case code == http.StatusConflict, code == http.StatusNotFound:
		return false, nil
	case code != http.StatusOK && code != http.StatusCreated:
		return false, markerRefused(verb, code)
	}
	return true, nil
}

// markerRefused returns the failure for a cluster that does not let Masthead read or write the marker.
func markerRefused(verb string, code int) *condition.Error {
	switch code {
	case http.StatusUnauthorized:
		return condition.NewError(fleetv1alpha1.ReasonUnauthorized, "The API server does not accept the credentials")
	case http.StatusForbidden:
		return condition.NewError(fleetv1alpha1.ReasonForbidden, fmt.Sprintf(
			"The API server does not let Masthead %s the CustomResourceDefinition %q, which says which hub the cluster belongs to",
			verb, fleetv1alpha1.HubMarkerName))
	}
	return condition.NewError(fleetv1alpha1.ReasonProbeFailed, fmt.Sprintf("The API server answered %d when Masthead tried to %s the CustomResourceDefinition %q",
		code, verb, fleetv1alpha1.HubMarkerName))
}
