// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package references

import (
	"context"
	"errors"
	"fmt"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	commonv1alpha1 "github.com/masthead-dev/masthead/apis/common/v1alpha1"
)

// forbidden are Grants of an API server that forbids listing them.
type forbidden struct{}

func (forbidden) Permits(context.Context, schema.GroupKind, string, Source) (bool, error) {
	return false, fmt.Errorf("cannot list: %w", apierrors.NewForbidden(schema.GroupResource{Resource: "referencegrants"}, "", errors.New("no")))
}

// TestNeeds: a Result names everything on which a later Request depends, and nothing that no longer matters.
func TestNeeds(t *testing.T) {
	const there = `resource: configmaps, name: common-settings, namespace: team-b, fromFieldPath: data.region`
	granted := permitted{Namespace: "team-b", Name: "common-settings"}
	cases := map[string]struct {
		reason, references     string
		grants                 Grants
		wantOwners, wantServed string
		wantFailed             string
	}{
		"Own": {
			reason:     "The own namespace needs no grant.",
			references: `[{resource: configmaps, name: missing, fromFieldPath: data.a, toFieldPath: spec.a}]`,
			wantFailed: commonv1alpha1.ReasonSourceNotFound, wantOwners: "null", wantServed: "null",
		},
		"Refused": {
			reason: "The owner can come to permit it.", references: `[{` + there + `, toFieldPath: spec.a}]`,
			wantFailed: commonv1alpha1.ReasonNotPermitted, wantOwners: `["team-b"]`, wantServed: "null",
		},
		"FilledOnce": {
			reason: "What was filled in once stays.", references: `[{` + there + `, toFieldPath: spec.a}]`, grants: granted,
			wantOwners: "null", wantServed: "null",
		},
		"Follows": {
			reason:     "A grant can be revoked. One that was looked up for another reference counts, too.",
			references: `[{` + there + `, toFieldPath: spec.a}, {` + there + `, toFieldPath: spec.b, policy: {resolve: Always}}]`, grants: granted,
			wantOwners: `["team-b"]`, wantServed: "null",
		},
		"MayNotAsk": {
			reason: "The resolver needs the right to list grants.", references: `[{` + there + `, toFieldPath: spec.a}]`, grants: forbidden{},
			wantFailed: commonv1alpha1.ReasonForbidden, wantOwners: `["team-b"]`, wantServed: "null",
		},
		"Optional": {
			reason: "It can be served later.",
			references: `[{group: other.example.org, resource: things, name: a, fromFieldPath: spec.a, toFieldPath: spec.a, policy: {resolution: Optional}},` +
				`{group: other.example.org, resource: things, name: b, fromFieldPath: spec.a, toFieldPath: spec.b, policy: {resolution: Optional}}]`,
			wantOwners: "null", wantServed: `[{"Group":"other.example.org","Resource":"things"}]`,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			obj := object(t, "apiVersion: example.org/v1\nkind: Thing\nmetadata: {name: thing, namespace: team-a}\nspec: {references: "+tc.references+"}\n")
			result, err := NewResolver().Resolve(context.Background(), Request{
				Object: obj, References: getReferences(t, obj), Reader: things(t), Mapper: mapper(), Tenancy: Tenancy{Grants: tc.grants},
			})
			var failed *Error
			if errors.As(err, &failed); tc.wantFailed == "" && err != nil || tc.wantFailed != "" && (failed == nil || failed.Reason != tc.wantFailed) {
				t.Errorf("%s: want the reason %q, got %v", tc.reason, tc.wantFailed, err)
			}
			if got := asText(t, result.Owners); got != tc.wantOwners {
				t.Errorf("%s: want the owners %s, got %s", tc.reason, tc.wantOwners, got)
			}
			if got := asText(t, result.Unserved); got != tc.wantServed {
				t.Errorf("%s: want %s not to be served, got %s", tc.reason, tc.wantServed, got)
			}
		})
	}
}
