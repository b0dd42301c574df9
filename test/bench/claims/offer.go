// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package claims

import (
	"context"
	"embed"
	"net/http"
	"os"
	"path/filepath"

	"github.com/masthead-dev/masthead/test/bench/apiserver"
)

//go:embed manifests
var manifests embed.FS

// Manifests writes what the hub and the workload clusters have besides what every fleet has, and returns the paths of
// the files.
func Manifests(dir string) (hub, workload string, err error) {
	for name, path := range map[string]*string{"hub": &hub, "workload": &workload} {
		content, err := manifests.ReadFile("manifests/" + name + ".yaml")
		if err != nil {
			return "", "", err
		}
		*path = filepath.Join(dir, name+".yaml")
		if err := os.WriteFile(*path, content, 0o600); err != nil {
			return "", "", err
		}
	}
	return hub, workload, nil
}

// ClassName is that of the EnrollmentClass under which clusters are enrolled.
const ClassName = "bench"

// CreateClass creates it in the hub. It is for clusters of the namespace default.
func CreateClass(ctx context.Context, hub *apiserver.Client) error {
	class := apiserver.Manifest("fleet.masthead.dev/v1alpha1", "EnrollmentClass", "", ClassName, map[string]any{"spec": map[string]any{
		"allowedNamespaces": map[string]any{"list": []string{"default"}},
		"agent":             map[string]any{"defaultTargetNamespace": Target, "apiGroups": []string{Group}},
	}})
	return hub.Apply(ctx, "/apis/fleet.masthead.dev/v1alpha1/enrollmentclasses/"+ClassName, class)
}

const xrdsPath = "/apis/apiextensions.crossplane.io/v1/compositeresourcedefinitions/"

// XRDPath is the path of the CompositeResourceDefinition that offers a kind.
func (k Kind) XRDPath() string { return xrdsPath + "x" + k.CRDName() }

// Offer makes the hub offer a kind as Crossplane would.
func (k Kind) Offer(ctx context.Context, hub *apiserver.Client) error {
	if err := hub.Apply(ctx, apiserver.CRDPath+k.CRDName(), k.CRD()); err != nil {
		return err
	}
	xrd := apiserver.Manifest("apiextensions.crossplane.io/v1", "CompositeResourceDefinition", "", "x"+k.CRDName(), map[string]any{"spec": map[string]any{
		"group": Group, "names": map[string]any{"kind": "X" + k.Name, "plural": "x" + k.Plural},
		"claimNames": map[string]any{"kind": k.Name, "plural": k.Plural},
		"versions":   []any{map[string]any{"name": Version, "served": true, "referenceable": true}},
	}})
	if err := hub.Apply(ctx, k.XRDPath(), xrd); err != nil {
		return err
	}
	offered := []byte(`{"status":{"conditions":[{"type":"Established","status":"True"},{"type":"Offered","status":"True"}]}}`)
	return hub.Do(ctx, http.MethodPatch, k.XRDPath()+"/status", apiserver.TypeMerge, offered)
}
