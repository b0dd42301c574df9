// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package connect

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/config/workload"
	"github.com/masthead-dev/masthead/pkg/crossplane"
)

// The ServiceAccount of Masthead in a workload cluster.
const (
	AccountNamespace = fleetv1alpha1.AgentNamespace
	AccountName      = "masthead"
)

// ClusterRoles of config/workload that only some classes need. The second one is also the name prefix of those
// aggregated to it.
const (
	roleRequirements = "masthead-workload-requirements"
	roleApplications = "masthead-workload-applications"
	roleComponents   = "masthead-workload-components"
)

// aggregateLabel aggregates a ClusterRole to roleRequirements.
const aggregateLabel = "rbac.masthead.dev/aggregate-to-workload-requirements"

// Rights returns the objects that a workload cluster of a class needs, in the order in which they are applied: those of
// config/workload, and the rights on the claim kinds that the hub offers to the class.
func Rights(class *fleetv1alpha1.EnrollmentClass, kinds []crossplane.Publication) ([]*unstructured.Unstructured, error) {
	all, err := shipped(workload.Files)
	if err != nil {
		return nil, err
	}
	agent := class.Spec.Agent.Mode != fleetv1alpha1.AgentModeDisabled
	applications := class.Spec.Applications.Mode != fleetv1alpha1.ApplicationsModeDisabled
	all = slices.DeleteFunc(all, func(u *unstructured.Unstructured) bool {
		name := u.GetName()
		return !agent && strings.HasPrefix(name, roleRequirements) ||
			!applications && (strings.HasPrefix(name, roleApplications) || strings.HasPrefix(name, roleComponents))
	})
	if agent {
		claims, err := claimRights(class.Spec.Agent.APIGroups, kinds)
		if err != nil {
			return nil, err
		}
		all = append(all, claims...)
	}
	order := []string{"Namespace", "ServiceAccount", "ClusterRole", "ClusterRoleBinding"}
	slices.SortStableFunc(all, func(a, b *unstructured.Unstructured) int {
		return slices.Index(order, a.GetKind()) - slices.Index(order, b.GetKind())
	})
	return all, nil
}

// shipped reads the objects of all files.
func shipped(files fs.FS) ([]*unstructured.Unstructured, error) {
	names, err := fs.Glob(files, "*.yaml")
	if err != nil {
		return nil, fmt.Errorf("cannot list the rights: %w", err)
	}
	var out []*unstructured.Unstructured
	for _, name := range names {
		data, err := fs.ReadFile(files, name)
		if err != nil {
			return nil, fmt.Errorf("cannot read %q: %w", name, err)
		}
		decoder := utilyaml.NewYAMLOrJSONDecoder(bytes.NewReader(data), len(data))
		for {
			u := &unstructured.Unstructured{}
			err := decoder.Decode(&u.Object)
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				return nil, fmt.Errorf("cannot read %q: %w", name, err)
			}
			if u.Object != nil {
				out = append(out, u)
			}
		}
	}
	return out, nil
}

// claimRights makes a ClusterRole for each API group, as config/samples/workload/claims-rights.yaml shows it.
func claimRights(groups []string, kinds []crossplane.Publication) ([]*unstructured.Unstructured, error) {
	resources := map[string][]string{}
	for _, k := range kinds {
		group := k.Kind.Group
		if (len(groups) == 0 || slices.Contains(groups, group)) && !slices.Contains(resources[group], k.Kind.Resource) {
			resources[group] = append(resources[group], k.Kind.Resource)
		}
	}
	var out []*unstructured.Unstructured
	for _, group := range sortedKeys(resources) {
		slices.Sort(resources[group])
		statuses := make([]string, 0, len(resources[group]))
		for _, resource := range resources[group] {
			statuses = append(statuses, resource+"/status")
		}
		role := &rbacv1.ClusterRole{
			TypeMeta: metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "ClusterRole"},
			ObjectMeta: metav1.ObjectMeta{
				Name: roleRequirements + "-" + group, Labels: map[string]string{aggregateLabel: "true", "app.kubernetes.io/name": "masthead"},
			},
			Rules: []rbacv1.PolicyRule{
				{APIGroups: []string{group}, Resources: resources[group], Verbs: []string{"get", "list", "watch", "patch"}},
				{APIGroups: []string{group}, Resources: statuses, Verbs: []string{"patch"}},
			},
		}
		object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(role)
		if err != nil {
			return nil, fmt.Errorf("cannot create the ClusterRole %q: %w", role.Name, err)
		}
		u := &unstructured.Unstructured{Object: object}
		unstructured.RemoveNestedField(u.Object, "metadata", "creationTimestamp")
		out = append(out, u)
	}
	return out, nil
}

func sortedKeys(m map[string][]string) []string {
	out := make([]string, 0, len(m))
	for key := range m {
		out = append(out, key)
	}
	slices.Sort(out)
	return out
}
