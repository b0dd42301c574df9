// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package providercrds

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/masthead-dev/masthead/internal/test/testenv"
)

// contractLabel is the label from which Cluster API core reads which version of a CRD fulfils its contract v1beta1.
const contractLabel = "cluster.x-k8s.io/v1beta1"

// Load returns the CRDs of some kinds, in their order, ready for an API server without the providers' webhooks. It is
// an error if this package does not know a kind.
func Load(ctx context.Context, kinds ...schema.GroupKind) ([]*apiextensionsv1.CustomResourceDefinition, error) {
	known := make(map[schema.GroupKind]crd)
	for _, crd := range append(allCRDs(), machineKinds()...) {
		known[crd.groupKind()] = crd
	}
	loaded := make([]*apiextensionsv1.CustomResourceDefinition, 0, len(kinds))
	for _, kind := range kinds {
		wanted, ok := known[kind]
		if !ok {
			return nil, fmt.Errorf("there is no CRD of %s in the modules that tests use", kind)
		}
		folder, err := foundFolders.of(wanted.source, func() (string, error) {
			return testenv.PinnedCRDs(ctx, wanted.source.pin, wanted.source.module, wanted.source.folder)
		})
		if err != nil {
			return nil, err
		}
		kept, err := parsed.of(wanted, func() (*apiextensionsv1.CustomResourceDefinition, error) { return wanted.find(folder) })
		if err != nil {
			return nil, err
		}
		definition := kept.DeepCopy()
		if wanted.source.isClusterAPIProvider() {
			addContract(definition)
		}
		loaded = append(loaded, definition)
	}
	return loaded, nil
}

// Write writes the CRDs of some kinds into a folder, one file each, and returns the paths. It is for programs that
// install files, such as a fleet of test/localfleet.
func Write(ctx context.Context, folder string, kinds ...schema.GroupKind) ([]string, error) {
	definitions, err := Load(ctx, kinds...)
	if err != nil {
		return nil, err
	}
	paths := make([]string, 0, len(definitions))
	for _, definition := range definitions {
		content, err := yaml.Marshal(definition)
		if err != nil {
			return nil, fmt.Errorf("cannot encode the CRD %q: %w", definition.Name, err)
		}
		path := filepath.Join(folder, definition.Name+".yaml")
		if err := os.WriteFile(path, content, 0o600); err != nil {
			return nil, fmt.Errorf("cannot write the CRD %q: %w", definition.Name, err)
		}
		paths = append(paths, path)
	}
	return paths, nil
}

func (s source) isClusterAPIProvider() bool {
	return s == clusterAPIAWS || s == clusterAPIAzure || s == clusterAPIGCP
}

// memory keeps what a process has read: a test that creates a hub for each case loads the same CRDs a hundred times,
// and each time needs the go command and a parser. Errors are not kept.
type memory[K comparable, V any] struct {
	mu    sync.Mutex
	known map[K]V
}

func (m *memory[K, V]) of(key K, find func() (V, error)) (V, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if v, ok := m.known[key]; ok {
		return v, nil
	}
	v, err := find()
	if err == nil {
		if m.known == nil {
			m.known = map[K]V{}
		}
		m.known[key] = v
	}
	return v, err
}

var (
	foundFolders memory[source, string]
	parsed       memory[crd, *apiextensionsv1.CustomResourceDefinition]
)

// read reads the CRD from the file in a folder, or makes it from that of another.
func (c crd) read(folder string, from crd) (*apiextensionsv1.CustomResourceDefinition, error) {
	path := filepath.Join(folder, from.group+"_"+from.plural+".yaml")
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("cannot read a CRD: %w", err)
	}
	var document map[string]any
	if err := yaml.Unmarshal(content, &document); err != nil {
		return nil, fmt.Errorf("cannot parse the CRD in %s: %w", path, err)
	}
	dropDescriptions(document)
	if from != c {
		c.makeFrom(document)
	}
	definition := &apiextensionsv1.CustomResourceDefinition{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(document, definition, true); err != nil {
		return nil, fmt.Errorf("cannot parse the CRD in %s: %w", path, err)
	}
	keepOneVersion(definition)
	return definition, nil
}

// dropDescriptions removes the description texts of a schema. The schema of a property with the name description is not
// a text, and stays.
func dropDescriptions(value any) {
	switch value := value.(type) {
	case map[string]any:
		if _, ok := value["description"].(string); ok {
			delete(value, "description")
		}
		for _, inner := range value {
			dropDescriptions(inner)
		}
	case []any:
		for _, inner := range value {
			dropDescriptions(inner)
		}
	}
}

// keepOneVersion keeps the version that imports read: that of the storage, or v1beta1 of a managed resource, to which
// its provider converts what it stores as v1beta2.
func keepOneVersion(definition *apiextensionsv1.CustomResourceDefinition) {
	definition.Spec.Conversion = nil
	read := slices.IndexFunc(definition.Spec.Versions, func(v apiextensionsv1.CustomResourceDefinitionVersion) bool {
		if strings.HasSuffix(definition.Spec.Group, ".upbound.io") {
			return v.Name == "v1beta1" && v.Served
		}
		return v.Storage
	})
	version := definition.Spec.Versions[read]
	version.Storage, version.Deprecated, version.DeprecationWarning = true, false, nil
	definition.Spec.Versions = []apiextensionsv1.CustomResourceDefinitionVersion{version}
}

func addContract(definition *apiextensionsv1.CustomResourceDefinition) {
	if definition.Labels == nil {
		definition.Labels = make(map[string]string)
	}
	definition.Labels[contractLabel] = definition.Spec.Versions[0].Name
}
