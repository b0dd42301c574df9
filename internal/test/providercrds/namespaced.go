// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package providercrds

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// NewestEnv is an environment variable that lists folders with CRDs of the newest providers for Azure and Google Cloud,
// e.g. package/crds of their repositories. CRDs that are there are not made.
const NewestEnv = "MASTHEAD_PROVIDER_CRDS"

// changes are what provider-azure 2.7 and provider-gcp 3.0 observe otherwise than the pinned modules, of the fields
// that imports read. Without from a field is new, without to it is gone.
var changes = []struct {
	source         source
	kind, from, to string
}{
	{providerAzure, "KubernetesCluster", "automaticChannelUpgrade", "automaticUpgradeChannel"},
	{providerAzure, "KubernetesCluster", "defaultNodePool.enableAutoScaling", "defaultNodePool.autoScalingEnabled"},
	{providerAzure, "KubernetesCluster", "defaultNodePool.nodeTaints", ""},
	{providerAzure, "KubernetesCluster", "networkProfile.ebpfDataPlane", ""},
	{providerAzure, "KubernetesCluster", "azureActiveDirectoryRoleBasedAccessControl.managed", ""},
	{providerAzure, "KubernetesClusterNodePool", "enableAutoScaling", "autoScalingEnabled"},
	{providerGCP, "Cluster", "", "controlPlaneEndpointsConfig.dnsEndpointConfig.endpoint"},
}

// isMade reports whether the CRD is made from that of the legacy group: the pinned module does not have it.
func (c crd) isMade() bool { return c.isModern() && c.source != providerAWS }

// legacy is what a CRD of a namespaced group is made from.
func (c crd) legacy() crd {
	c.group = strings.Replace(c.group, ".m.", ".", 1)
	if c.kind == "ClusterProviderConfig" {
		c.kind, c.plural = "ProviderConfig", "providerconfigs"
	}
	return c
}

// find reads the CRD from the folder of the module, or from one of NewestEnv, or makes it.
func (c crd) find(folder string) (*apiextensionsv1.CustomResourceDefinition, error) {
	if !c.isMade() {
		return c.read(folder, c)
	}
	for _, newest := range filepath.SplitList(os.Getenv(NewestEnv)) {
		if found, err := c.read(newest, c); !errors.Is(err, fs.ErrNotExist) {
			return found, err
		}
	}
	return c.read(folder, c.legacy())
}

// makeFrom turns the document of the legacy CRD into this one, as the providers' generator makes both from one
// description of the resource. A test compares the results with the CRDs of provider-aws, which has both.
func (c crd) makeFrom(document map[string]any) {
	spec := within(document, "spec")
	within(document, "metadata")["name"] = c.plural + "." + c.group
	spec["group"], spec["scope"] = c.group, "Namespaced"
	if c.kind == "ClusterProviderConfig" {
		spec["scope"] = "Cluster"
	}
	names := within(spec, "names")
	names["kind"], names["listKind"], names["plural"], names["singular"] = c.kind, c.kind+"List", c.plural, strings.ToLower(c.kind)

	// The newest version has nested blocks as objects, like all namespaced ones.
	versions, _ := spec["versions"].([]any)
	newest, _ := versions[len(versions)-1].(map[string]any)
	newest["name"], newest["storage"] = "v1beta1", true
	spec["versions"] = []any{newest}
	root := within(newest, "schema", "openAPIV3Schema", "properties")
	fields := within(root, "spec", "properties")
	if fields["forProvider"] == nil {
		return
	}
	delete(fields, "deletionPolicy")
	delete(fields, "publishConnectionDetailsTo")
	text := map[string]any{"type": "string"}
	fields["providerConfigRef"] = map[string]any{
		"type": "object", "default": map[string]any{"kind": "ClusterProviderConfig", "name": "default"},
		"properties": map[string]any{"kind": text, "name": text}, "required": []any{"kind", "name"},
	}
	fields["writeConnectionSecretToRef"] = map[string]any{
		"type": "object", "properties": map[string]any{"name": text}, "required": []any{"name"},
	}
	makeReferences(root)
	for _, change := range changes {
		if change.source == c.source && change.kind == c.kind {
			move(within(root, "status", "properties", "atProvider"), change.from, change.to)
		}
	}
}

// makeReferences lets references and selectors name another namespace, and those of keys in Secrets none.
func makeReferences(value any) {
	switch value := value.(type) {
	case map[string]any:
		if fields := within(value, "properties"); within(fields, "policy", "properties")["resolve"] != nil {
			fields["namespace"] = map[string]any{"type": "string"}
		} else if fields["key"] != nil && fields["name"] != nil && fields["namespace"] != nil {
			delete(fields, "namespace")
			value["required"] = []any{"key", "name"}
		}
		for _, inner := range value {
			makeReferences(inner)
		}
	case []any:
		for _, inner := range value {
			makeReferences(inner)
		}
	}
}

// move gives a field of a schema another path, adds a text there if the field is new, or removes it.
func move(schema map[string]any, from, to string) {
	field := any(map[string]any{"type": "string"})
	if from != "" {
		parent, name := findParent(schema, from)
		field = parent[name]
		delete(parent, name)
	}
	if to != "" {
		parent, name := findParent(schema, to)
		parent[name] = field
	}
}

// findParent is where the schema has the last field of a path, whose objects are created where they are not there.
func findParent(schema map[string]any, path string) (fields map[string]any, name string) {
	steps := strings.Split(path, ".")
	fields = within(schema, "properties")
	for _, step := range steps[:len(steps)-1] {
		if fields[step] == nil {
			fields[step] = map[string]any{"type": "object", "properties": map[string]any{}}
		}
		fields = within(fields, step, "properties")
	}
	return fields, steps[len(steps)-1]
}

// within is the object at a path, or nil.
func within(object map[string]any, path ...string) map[string]any {
	for _, step := range path {
		object, _ = object[step].(map[string]any)
	}
	return object
}
