// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package propagation

import (
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/masthead-dev/masthead/pkg/objects"
)

// MetadataPatch returns a patch between two states of an object's metadata, which fails if it has changed meanwhile.
func MetadataPatch(from, to *unstructured.Unstructured) (client.Patch, error) {
	had, _ := from.Object["metadata"].(map[string]any)
	wanted, _ := to.Object["metadata"].(map[string]any)
	patch := objects.MergePatch(had, wanted)
	patch["resourceVersion"] = from.GetResourceVersion()
	return rawPatch(map[string]any{"metadata": patch})
}

// StatusPatch returns a patch of an object's status, which fails if the object has changed meanwhile: a merge patch
// replaces the whole list of conditions, and others write some of them (keepReferencesResolved). Another object of the
// name has another resource version, and never gets the status; a UID would be ignored here.
func StatusPatch(of *unstructured.Unstructured, to map[string]any) (client.Patch, error) {
	shown, _ := of.Object["status"].(map[string]any)
	return rawPatch(map[string]any{
		"metadata": map[string]any{"resourceVersion": of.GetResourceVersion()},
		"status":   objects.MergePatch(shown, to),
	})
}

func rawPatch(content map[string]any) (client.Patch, error) {
	data, err := json.Marshal(content)
	if err != nil {
		return nil, fmt.Errorf("cannot create a patch: %w", err)
	}
	return client.RawPatch(types.MergePatchType, data), nil
}

// Shell returns an object with only its identity, to be filled by an API server's answer.
func Shell(of *unstructured.Unstructured) *unstructured.Unstructured {
	out := &unstructured.Unstructured{Object: map[string]any{}}
	out.SetGroupVersionKind(of.GroupVersionKind())
	out.SetNamespace(of.GetNamespace())
	out.SetName(of.GetName())
	return out
}
