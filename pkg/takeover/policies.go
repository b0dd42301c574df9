// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package takeover

import (
	"bytes"
	"fmt"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"sigs.k8s.io/yaml"

	"github.com/masthead-dev/masthead/config/policies"
)

// AllowUnimportAnnotation allows the deletion of a reflection, a MachinePool or a Cluster of an import. Its value is
// the UID of the import: the value of the object's own label fleet.masthead.dev/import-uid. The importer sets it before
// it deletes; a person sets it to delete what the importer cannot.
const AllowUnimportAnnotation = "fleet.masthead.dev/allow-unimport"

// Policy is an admission policy of the importer and the binding that puts it into force. Both have the same name.
type Policy struct {
	Policy  *admissionregistrationv1.ValidatingAdmissionPolicy
	Binding *admissionregistrationv1.ValidatingAdmissionPolicyBinding
}

// family is the group of objects that one policy covers.
type family struct {
	file     string
	canaries func() []canary
}

func families() []family {
	return []family{
		{file: "managed-resources.yaml", canaries: managedResourceCanaries},
		{file: "reflections.yaml", canaries: reflectionCanaries},
		{file: "cluster-api.yaml", canaries: clusterAPICanaries},
		{file: "identities.yaml", canaries: identityCanaries},
		// These refuse nothing where no cluster is imported, so no canary can test them.
		{file: "members.yaml", canaries: func() []canary { return nil }},
		{file: "managers.yaml", canaries: func() []canary { return nil }},
	}
}

// Policies returns the importer's policies with their bindings, from config/policies.
func Policies() ([]Policy, error) {
	var all []Policy
	for _, family := range families() {
		policy, err := load(family.file)
		if err != nil {
			return nil, err
		}
		all = append(all, policy)
	}
	return all, nil
}

func load(file string) (Policy, error) {
	content, err := policies.Files.ReadFile(file)
	if err != nil {
		return Policy{}, fmt.Errorf("cannot read the admission policy %s: %w", file, err)
	}
	policy := Policy{
		Policy:  &admissionregistrationv1.ValidatingAdmissionPolicy{},
		Binding: &admissionregistrationv1.ValidatingAdmissionPolicyBinding{},
	}
	documents := splitDocuments(content)
	if len(documents) != 2 {
		return Policy{}, fmt.Errorf("cannot read the admission policy %s: want a policy and its binding, got %d objects", file, len(documents))
	}
	for i, into := range []any{policy.Policy, policy.Binding} {
		if err := yaml.UnmarshalStrict(documents[i], into); err != nil {
			return Policy{}, fmt.Errorf("cannot parse the admission policy %s: %w", file, err)
		}
	}
	return policy, nil
}

// splitDocuments splits a YAML stream at the lines that separate its documents.
func splitDocuments(content []byte) [][]byte {
	return bytes.Split(content, []byte("\n---\n"))
}
