// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package propagation

import (
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/masthead-dev/masthead/pkg/mergepatch"
)

// MetadataPatch makes the metadata of an object those of another state of it, on condition that it has not changed
// meanwhile.
func MetadataPatch(from, to *unstructured.Unstructured) (client.Patch, error) {
	had, _ := from.Object["metadata"].(map[string]any)
	wanted, _ := to.Object["metadata"].(map[string]any)
	patch := mergepatch.Between(had, wanted)
	patch["resourceVersion"] = from.GetResourceVersion()
	return rawPatch(map[string]any{"metadata": patch})
}

// StatusPatch makes the status of an object another one, on condition that the object has not changed meanwhile: a
// merge patch replaces the list of conditions as a whole, and others write some of them (keepReferencesResolved). No
// other object of the name has the same resource version, so that none gets the status; a UID would be ignored here.
func StatusPatch(of *unstructured.Unstructured, to map[string]any) (client.Patch, error) {
	shown, _ := of.Object["status"].(map[string]any)
	return rawPatch(map[string]any{
		"metadata": map[string]any{"resourceVersion": of.GetResourceVersion()},
		"status":   mergepatch.Between(shown, to),
	})
}

func rawPatch(content map[string]any) (client.Patch, error) {
	data, err := json.Marshal(content)
	if err != nil {
		return nil, fmt.Errorf("cannot make a patch: %w", err)
	}
	return client.RawPatch(types.MergePatchType, data), nil
}

// Shell is an object that only says which one it is, to be filled by what an API server answers.
func Shell(of *unstructured.Unstructured) *unstructured.Unstructured {
	out := &unstructured.Unstructured{Object: map[string]any{}}
	out.SetGroupVersionKind(of.GroupVersionKind())
	out.SetNamespace(of.GetNamespace())
	out.SetName(of.GetName())
	return out
}
