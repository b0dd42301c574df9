// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1_test

import (
	"encoding/json"
	"math/rand/v2"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appsv1alpha1 "github.com/masthead-dev/masthead/apis/apps/v1alpha1"
)

// TestValidationOfSelectors verifies the KEP's rule: the selector is valid, non-nil and set-based.
func TestValidationOfSelectors(t *testing.T) {
	const (
		badKey     = "the keys of matchLabels must be valid names of labels"
		needValues = "the operators In and NotIn need values, Exists and DoesNotExist can have none"
	)
	labelsOf := func(key, value string) object { return selecting(object{"matchLabels": object{key: value}}) }
	tooMany := object{}
	for _, name := range many(33, "l%d") {
		tooMany[name.(string)] = "x"
	}
	validate(t, map[string]validationCase{
		"Absent":          {reason: "The selector is not nil.", spec: with(object{"selector": nil}), want: "spec.selector: Required value"},
		"Everything":      {reason: "One that matches everything is a selector: the annotation still selects.", spec: selecting(object{})},
		"Prefixed":        {reason: "Keys can have a prefix.", spec: labelsOf("app.kubernetes.io/name", "wordpress")},
		"EmptyValue":      {reason: "Values can be empty.", spec: labelsOf("app", "")},
		"In":              {reason: "Set-based.", spec: expression("tier", "In", "web", "db", "")},
		"NotIn":           {reason: "Set-based.", spec: expression("tier", "NotIn", "web")},
		"Exists":          {reason: "Set-based.", spec: expression("acmeco.org/tier", "Exists")},
		"DoesNotExist":    {reason: "Set-based.", spec: expression("tier", "DoesNotExist")},
		"EmptyValues":     {reason: "No values and an empty list of them are the same.", spec: selecting(object{"matchExpressions": []any{object{"key": "tier", "operator": "Exists", "values": []any{}}}})},
		"InNothing":       {reason: "In without values would match nothing.", spec: expression("tier", "In"), want: needValues},
		"NotInNothing":    {reason: "NotIn without values would match everything.", spec: expression("tier", "NotIn"), want: needValues},
		"ExistsAs":        {reason: "Exists has no values.", spec: expression("tier", "Exists", "web"), want: needValues},
		"DoesNotExistAs":  {reason: "DoesNotExist has no values.", spec: expression("tier", "DoesNotExist", "web"), want: needValues},
		"Operator":        {reason: "There are four operators.", spec: expression("tier", "Gt", "1"), want: `Unsupported value: "Gt"`},
		"NoKey":           {reason: "A requirement is about a label.", spec: expression("", "Exists"), want: "should be at least 1 chars long"},
		"KeyWithSpace":    {reason: "No label is called so.", spec: expression("the tier", "Exists"), want: "key must be a valid name of a label"},
		"KeyTwoSlashes":   {reason: "No label is called so.", spec: expression("a/b/c", "Exists"), want: "key must be a valid name of a label"},
		"KeyEndsInDash":   {reason: "No label is called so.", spec: expression("tier-", "Exists"), want: "key must be a valid name of a label"},
		"PrefixTwoDots":   {reason: "A prefix is a DNS subdomain.", spec: expression("a..b/tier", "Exists"), want: "key must be a valid name of a label"},
		"PrefixDotDash":   {reason: "A prefix is a DNS subdomain.", spec: expression("a.-b/tier", "Exists"), want: "key must be a valid name of a label"},
		"PrefixCapitals":  {reason: "A prefix is a DNS subdomain.", spec: expression("Acmeco.org/tier", "Exists"), want: "key must be a valid name of a label"},
		"PrefixTooLong":   {reason: "A prefix has 253 characters at most.", spec: expression(strings.Repeat("a", 254)+"/tier", "Exists"), want: "key must be a valid name of a label"},
		"PrefixLongest":   {reason: "A prefix can have 253 characters.", spec: expression(strings.Repeat("a", 253)+"/"+strings.Repeat("b", 63), "Exists")},
		"NameTooLong":     {reason: "A name has 63 characters at most.", spec: expression(strings.Repeat("a", 64), "Exists"), want: "key must be a valid name of a label"},
		"ValueWithSpace":  {reason: "No label has such a value.", spec: expression("tier", "In", "a b"), want: "it must be a valid value of a label"},
		"ValueDash":       {reason: "No label has such a value.", spec: expression("tier", "In", "-"), want: "it must be a valid value of a label"},
		"ValueTooLong":    {reason: "No label has such a value.", spec: expression("tier", "In", strings.Repeat("a", 64)), want: "may not be more than 63"},
		"LabelKey":        {reason: "No label is called so.", spec: labelsOf("a/b/c", "x"), want: badKey},
		"LabelKeyDots":    {reason: "A prefix is a DNS subdomain.", spec: labelsOf("a..b/c", "x"), want: badKey},
		"LabelKeyPrefix":  {reason: "A prefix has 253 characters at most.", spec: labelsOf(strings.Repeat("a", 254)+"/c", "x"), want: badKey},
		"LabelKeyEmpty":   {reason: "No label is called so.", spec: labelsOf("", "x"), want: badKey},
		"LabelValue":      {reason: "No label has such a value.", spec: labelsOf("app", "a b"), want: "it must be a valid value of a label"},
		"LabelNumber":     {reason: "A value is text.", spec: selecting(object{"matchLabels": object{"app": int64(1)}}), want: "must be of type string"},
		"TheKEPsSpelling": {reason: "What is misspelt is not ignored: the KEP's own example would match everything.", spec: selecting(object{"matchLables": object{"app": "x"}}), want: "unknown field"},
		"TooManyLabels":   {reason: "A selector is bounded.", spec: selecting(object{"matchLabels": tooMany}), want: "must have at most 32 items"},
		"TooManyValues":   {reason: "A selector is bounded.", spec: expression("tier", "In", many(65, "v%d")...), want: "must have at most 64 items"},
	})
}

// TestSelectorCannotBeChanged verifies the KEP's rule that a selector cannot be changed: what it selected would be
// orphaned.
func TestSelectorCannotBeChanged(t *testing.T) {
	app := application("immutable", selecting(object{"matchLabels": object{"app": "wordpress", "tier": "web"}}))
	if err := workload.Create(t.Context(), app); err != nil {
		t.Fatal(err)
	}
	const refusal = "the selector cannot be changed: what it selected would be orphaned"
	cases := map[string]struct{ reason, patch, want string }{
		"SomethingElse": {"Everything else can be changed.", `{"spec":{"version":"2"}}`, ""},
		"TheSame":       {"The same selector is not a change.", `{"spec":{"selector":{"matchLabels":{"tier":"web"}}}}`, ""},
		"AnotherValue":  {"Another value selects other objects.", `{"spec":{"selector":{"matchLabels":{"app":"mysql"}}}}`, refusal},
		"OneMore":       {"A narrower selector orphans objects.", `{"spec":{"selector":{"matchLabels":{"more":"x"}}}}`, refusal},
		"OneFewer":      {"A wider selector adds objects that it did not select before.", `{"spec":{"selector":{"matchLabels":{"tier":null}}}}`, refusal},
		"Expressions":   {"So does another form.", `{"spec":{"selector":{"matchExpressions":[{"key":"app","operator":"Exists"}]}}}`, refusal},
		"Removed":       {"A selector is required.", `{"spec":{"selector":null}}`, "spec.selector: Required value"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			err := workload.Patch(t.Context(), app.DeepCopy(), client.RawPatch("application/merge-patch+json", []byte(tc.patch)), client.DryRunAll)
			switch {
			case tc.want == "" && err != nil:
				t.Errorf("%s\nunexpected error: %v", tc.reason, err)
			case tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)):
				t.Errorf("%s\nwant an error with %q, got %v", tc.reason, tc.want, err)
			}
		})
	}
}

func TestAsSelector(t *testing.T) {
	cases := map[string]struct {
		reason   string
		selector string
		matches  []labels.Set
		not      []labels.Set
	}{
		"Empty": {
			reason: "An empty selector matches everything, as everywhere in Kubernetes.", selector: `{}`,
			matches: []labels.Set{nil, {"a": "b"}},
		},
		"Labels": {
			reason: "All labels must be there.", selector: `{"matchLabels":{"app":"wordpress","tier":""}}`,
			matches: []labels.Set{{"app": "wordpress", "tier": "", "more": "x"}}, not: []labels.Set{nil, {"app": "wordpress"}, {"app": "x", "tier": ""}},
		},
		"Expressions": {
			reason: "All requirements must be met.",
			selector: `{"matchExpressions":[{"key":"tier","operator":"In","values":["web","db"]},{"key":"env","operator":"NotIn","values":["test"]},
				{"key":"app","operator":"Exists"},{"key":"old","operator":"DoesNotExist"}]}`,
			matches: []labels.Set{{"app": "", "tier": "web"}, {"app": "x", "tier": "db", "env": "prod"}},
			not:     []labels.Set{nil, {"app": "x", "tier": "other"}, {"app": "x", "tier": "web", "env": "test"}, {"tier": "web"}, {"app": "x", "tier": "web", "old": ""}},
		},
		"Both": {
			reason: "Labels and requirements must both match.", selector: `{"matchLabels":{"app":"x"},"matchExpressions":[{"key":"tier","operator":"Exists"}]}`,
			matches: []labels.Set{{"app": "x", "tier": "y"}}, not: []labels.Set{{"app": "x"}, {"tier": "y"}},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var s appsv1alpha1.LabelSelector
			if err := json.Unmarshal([]byte(tc.selector), &s); err != nil {
				t.Fatal(err)
			}
			selector, err := s.AsSelector()
			if err != nil {
				t.Fatalf("%s\n%v", tc.reason, err)
			}
			for _, set := range tc.matches {
				if !selector.Matches(set) {
					t.Errorf("%s\nit does not match %v", tc.reason, set)
				}
			}
			for _, set := range tc.not {
				if selector.Matches(set) {
					t.Errorf("%s\nit matches %v", tc.reason, set)
				}
			}
		})
	}
}

// TestWhatTheSchemaAcceptsConverts asks the API server about many selectors, valid ones and others. If it accepted one
// that cannot be converted, the Application could never be reconciled.
func TestWhatTheSchemaAcceptsConverts(t *testing.T) {
	random := rand.New(rand.NewPCG(4, 2026)) // The same selectors each time.
	accepted, refused := 0, 0
	for range 400 {
		s := randomSelector(random)
		data, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		var selector object
		if err := json.Unmarshal(data, &selector); err != nil {
			t.Fatal(err)
		}
		_, converted := s.AsSelector()
		err = workload.Create(t.Context(), application("converts", selecting(selector)), client.DryRunAll)
		switch {
		case err == nil && converted != nil:
			t.Errorf("the API server accepts %s, which cannot be converted: %v", data, converted)
		case apierrors.IsInvalid(err) && converted == nil:
			t.Errorf("the API server refuses %s, which is a valid selector: %v", data, err)
		case err != nil && !apierrors.IsInvalid(err):
			t.Fatal(err)
		case err == nil:
			accepted++
		default:
			refused++
		}
	}
	if accepted < 50 || refused < 50 {
		t.Errorf("the selectors are not varied enough: %d accepted, %d refused", accepted, refused)
	}
}

func randomSelector(r *rand.Rand) appsv1alpha1.LabelSelector {
	pick := func(from ...string) string { return from[r.IntN(len(from))] }
	word := func() string {
		if r.IntN(12) > 0 {
			return pick("app", "tier", "a.b_c-d", "A9", strings.Repeat("n", 63))
		}
		return pick("", "-", "a b", "a-", ".a", strings.Repeat("n", 64), "ä", "a\n", "_")
	}
	key := func() string {
		if r.IntN(2) == 0 {
			return word()
		}
		if r.IntN(6) > 0 {
			return pick("acmeco.org", "a", "a-b.c-d", strings.Repeat("p", 253)) + "/" + word()
		}
		return pick("", "a..b", "a.-b", "-a", "a.", "A", strings.Repeat("p", 254), "a/b") + "/" + word()
	}
	s := appsv1alpha1.LabelSelector{}
	for range r.IntN(3) {
		if s.MatchLabels == nil {
			s.MatchLabels = map[string]appsv1alpha1.LabelValue{}
		}
		s.MatchLabels[key()] = appsv1alpha1.LabelValue(word())
	}
	for range r.IntN(3) {
		e := appsv1alpha1.LabelSelectorRequirement{Key: key()}
		if r.IntN(2) == 0 {
			e.Operator = "Exists"
		} else {
			e.Operator = "NotIn"
			e.Values = append(e.Values, appsv1alpha1.LabelValue(word()))
		}
		if r.IntN(10) == 0 {
			e.Values = nil
		}
		s.MatchExpressions = append(s.MatchExpressions, e)
	}
	return s
}
