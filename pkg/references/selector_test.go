// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package references

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	commonv1alpha1 "github.com/masthead-dev/masthead/apis/common/v1alpha1"
)

// lister answers each list with the same objects.
type lister struct {
	*objects

	names  []string
	ns     string
	labels map[string]string
	rest   string
	lists  int
}

func (l *lister) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	l.lists++
	out := list.(*metav1.PartialObjectMetadataList) //nolint:forcetypeassert // A test.
	out.Continue = l.rest
	for _, name := range l.names {
		out.Items = append(out.Items, metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: l.ns, Name: name, Labels: l.labels}})
	}
	return nil
}

// manySelectors has as many references as an object can have, each with another selector.
func manySelectors() string {
	var out []string
	for i := range maxReferences {
		out = append(out, fmt.Sprintf("{group: ec2.aws.crossplane.io, resource: vpcs, selector: {matchLabels: {l%d: x}}}", i))
	}
	return "[" + strings.Join(out, ", ") + "]"
}

func matchingAll() map[string]string {
	out := map[string]string{}
	for i := range maxReferences {
		out[fmt.Sprintf("l%d", i)] = "x"
	}
	return out
}

// TestSelector: a selector finds the only object with the labels, and reveals nothing of what its author may not
// reference.
func TestSelector(t *testing.T) {
	const vpcs = `group: ec2.aws.crossplane.io, resource: vpcs, selector: {matchLabels: {role: main}}`
	const phase = `, fromFieldPath: status.phase, toFieldPath: spec.phase`
	matching := map[string]string{"role": "main", "other": "x"}
	cases := map[string]struct {
		reason     string
		references string
		cluster    bool
		tenancy    Tenancy
		server     lister
		want       string
		wantReason string
		wantError  string
		wantLists  int
	}{
		"One": {
			reason: "It is listed once.", references: `[{` + vpcs + phase + `}, {` + vpcs + `}]`, server: lister{names: []string{"main-vpc"}, ns: "team-a", labels: matching},
			want: `{"phase":"Creating"}`, wantLists: 1,
		},
		"Variable": {
			reason: "An expression takes it from there.", server: lister{names: []string{"main-vpc"}, ns: "team-a", labels: matching},
			references: `[{variables: [{name: a, fromRef: {` + vpcs + `, fieldPath: status.phase}}], expression: variables.a, toFieldPath: spec.phase}]`,
			want:       `{"phase":"Creating"}`, wantLists: 1,
		},
		"FromClusterScoped": {
			reason: "It names the namespace.", cluster: true, references: `[{namespace: team-a, ` + vpcs + phase + `}]`,
			server: lister{names: []string{"main-vpc"}, ns: "team-a", labels: matching}, want: `{"phase":"Creating"}`, wantLists: 1,
		},
		"None": {
			reason: "It may come.", references: `[{` + vpcs + phase + `}]`, want: `{}`, wantLists: 1, wantReason: commonv1alpha1.ReasonSourceNotFound,
			wantError: `cannot resolve spec.references[0]: vpcs.ec2.aws.crossplane.io in the namespace "team-a" with role=main: no object has these labels`,
		},
		"Several": {
			reason: "It is not clear which one is meant.", references: `[{` + vpcs + phase + `}]`,
			server: lister{names: []string{"a", "b", "c", "d"}, ns: "team-a", labels: matching}, want: `{}`, wantLists: 1,
			wantReason: commonv1alpha1.ReasonAmbiguous,
			wantError: `cannot resolve spec.references[0]: vpcs.ec2.aws.crossplane.io in the namespace "team-a" with role=main: ` +
				`several objects have these labels: a, b, c and more`,
		},
		"Part": {
			reason: "There may be more.", references: `[{` + vpcs + phase + `}]`, want: `{}`, wantLists: 1, wantReason: commonv1alpha1.ReasonUnavailable,
			server: lister{names: []string{"main-vpc"}, ns: "team-a", labels: matching, rest: "x"},
		},
		"ForgedNamespace": {
			reason: "An API server of a workload cluster may answer anything.", references: `[{` + vpcs + phase + `}]`, want: `{}`, wantLists: 1,
			server: lister{names: []string{"main-vpc"}, ns: "team-b", labels: matching}, wantReason: commonv1alpha1.ReasonSourceNotFound,
		},
		"ForgedLabels": {
			reason: "It was not selected.", references: `[{` + vpcs + phase + `}]`, want: `{}`, wantLists: 1,
			server: lister{names: []string{"main-vpc"}, ns: "team-a"}, wantReason: commonv1alpha1.ReasonSourceNotFound,
		},
		"EnumerateSecrets": {
			reason:     "The names of Secrets are not for those who may not list them.",
			references: `[{resource: secrets, selector: {matchLabels: {a: b}}}]`, want: `{}`, wantReason: commonv1alpha1.ReasonSecretNotPermitted,
		},
		"EnumerateOtherNamespace": {
			reason:     "A grant for one name is not one to learn the others.",
			tenancy:    Tenancy{Grants: permitted(types.NamespacedName{Namespace: "team-b", Name: "main-vpc"})},
			references: `[{namespace: team-b, ` + vpcs + phase + `}]`, want: `{}`, wantReason: commonv1alpha1.ReasonNotPermitted,
		},
		"EnumerateClusterScoped": {
			reason:     "Namespaced objects do not reference them.",
			references: `[{resource: nodes, selector: {matchLabels: {a: b}}}]`, want: `{}`, wantReason: commonv1alpha1.ReasonNotPermitted,
		},
		"ClusterScoped": {
			reason: "The class permits it.", tenancy: Tenancy{ClusterScoped: []schema.GroupResource{{Resource: "nodes"}}},
			references: `[{resource: nodes, selector: {matchLabels: {role: main}}, fromFieldPath: spec.podCIDR, toFieldPath: spec.cidr}]`,
			server:     lister{names: []string{"node-1"}, labels: matching}, want: `{"cidr":"10.0.0.0/24"}`, wantLists: 1,
		},
		"EnumerateNamesOfClusterScoped": {
			reason: "The class permits to reference them by name.", tenancy: Tenancy{ClusterScoped: []schema.GroupResource{{Resource: "nodes"}}},
			references: `[{resource: nodes, selector: {matchLabels: {role: main}}}]`, server: lister{names: []string{"node-1", "node-2"}, labels: matching},
			want: `{}`, wantLists: 1, wantReason: commonv1alpha1.ReasonAmbiguous,
			wantError: `cannot resolve spec.references[0]: nodes with role=main: several objects have these labels`,
		},
		"KeepServerBusy": {
			reason: "Each selector is a request.", references: manySelectors(), server: lister{names: []string{"main-vpc"}, ns: "team-a", labels: matchingAll()},
			want: `{}`, wantLists: maxSelections, wantReason: commonv1alpha1.ReasonInvalidReference,
		},
		"SelectItself": {
			reason:     "It is the only one.",
			references: `[{group: example.org, version: v1, resource: things, selector: {matchLabels: {role: main}}}]`,
			server:     lister{names: []string{"thing"}, ns: "team-a", labels: matching}, want: `{}`, wantReason: commonv1alpha1.ReasonInvalidReference, wantLists: 1,
		},
		"Invalid": {
			reason:     "It is no label.",
			references: `[{resource: configmaps, selector: {matchLabels: {"a b": c}}}]`, want: `{}`, wantReason: commonv1alpha1.ReasonInvalidReference,
		},
		"Empty": {
			reason:     "It would select everything.",
			references: `[{resource: configmaps, selector: {matchLabels: {}}}]`, want: `{}`, wantReason: commonv1alpha1.ReasonInvalidReference,
		},
		"NameToo": {
			reason:     "One of them is meant.",
			references: `[{resource: configmaps, name: a, selector: {matchLabels: {a: b}}}]`, want: `{}`, wantReason: commonv1alpha1.ReasonInvalidReference,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			ns := "namespace: team-a, "
			if tc.cluster {
				ns = ""
			}
			obj := object(t, "{apiVersion: example.org/v1, kind: Thing, metadata: {"+ns+"name: thing}, spec: {references: "+tc.references+"}}")
			tc.server.objects = things(t)
			result, err := NewResolver().Resolve(t.Context(), Request{
				Object: obj, References: getReferences(t, obj), Reader: &tc.server, Mapper: mapper(), Tenancy: tc.tenancy,
			})
			got := result.Object.DeepCopy().Object["spec"].(map[string]any) //nolint:forcetypeassert // A test.
			delete(got, "references")
			if asText(t, got) != tc.want || tc.server.lists != tc.wantLists {
				t.Errorf("%s Want %s after %d lists, got %s after %d", tc.reason, tc.want, tc.wantLists, asText(t, got), tc.server.lists)
			}
			failed := &Error{}
			if errors.As(err, &failed); failed.Reason != tc.wantReason || tc.wantError != "" && err.Error() != tc.wantError {
				t.Errorf("%s Want %s %q, got %s %v", tc.reason, tc.wantReason, tc.wantError, failed.Reason, err)
			}
			if wants := err != nil && tc.wantLists > 0; result.Selected != wants {
				t.Errorf("%s Want the selection to determine the outcome: %v, got %v", tc.reason, wants, result.Selected)
			}
		})
	}
}
