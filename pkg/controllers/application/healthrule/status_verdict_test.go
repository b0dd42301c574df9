// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package healthrule

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/internal/test/verdict"
)

func TestVerdictsOnHealthRules(t *testing.T) {
	kind := fleetv1alpha1.GroupVersion.WithKind("HealthRule")
	rule := func(name, degraded string) fleetv1alpha1.HealthRule {
		return fleetv1alpha1.HealthRule{
			ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("uid-" + name), Generation: 2, CreationTimestamp: metav1.Unix(1_700_000_000, 0)},
			Spec:       fleetv1alpha1.HealthRuleSpec{Group: "db.acmeco.org", Kind: "Database", Degraded: degraded},
		}
	}
	of := func(i int, rules ...fleetv1alpha1.HealthRule) *unstructured.Unstructured {
		r := rules[i]
		r.Status = ruleStatus(&rules[i], rules, follow(rules, nil, nil), time.Unix(1_700_000_060, 0))
		return verdict.Object(t, kind, &r)
	}
	decides := rule("a", "false")
	decides.Spec.Healthy = "true"
	edited := of(0, rule("a", "false"))
	edited.SetGeneration(9)
	table := verdict.Table{Kind: kind.GroupKind(), Cases: map[string]verdict.Case{
		"Created": {
			Reason: "Masthead has not processed it yet.", Want: verdict.InProgress,
			Object: verdict.Created(t, "config/crd/bases/fleet.masthead.dev_healthrules.yaml", of(0, rule("a", "false"))),
		},
		"Edited":        {Reason: "Masthead has not processed the change yet.", Object: edited, Want: verdict.InProgress},
		"Compiled":      {Reason: "It is followed.", Object: of(0, rule("a", "object.status.phase == 'Dead'")), Want: verdict.Current},
		"CannotCompile": {Reason: "Its author has to correct it.", Object: of(0, rule("a", "object.")), Want: verdict.Failed},
		"Shadowed": {
			Reason: "It is not followed as long as the older one is there.",
			Object: of(1, decides, rule("b", "false")), Want: verdict.Failed,
		},
	}}
	table.Check(t)
	verdict.Covers(t, verdict.Reasons(t, "apis/fleet/v1alpha1", "of a HealthRule"), nil, table.Objects()...)
}
