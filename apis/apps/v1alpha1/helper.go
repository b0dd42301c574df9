// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// AsSelector returns the label selector. Every value that the schema accepts can be converted; an error means that no
// API server validated it.
func (s *LabelSelector) AsSelector() (labels.Selector, error) {
	return metav1.LabelSelectorAsSelector(s.asMeta())
}

// asMeta converts the selector to Kubernetes' own type, whose code evaluates it.
func (s *LabelSelector) asMeta() *metav1.LabelSelector {
	out := &metav1.LabelSelector{}
	if len(s.MatchLabels) > 0 {
		out.MatchLabels = make(map[string]string, len(s.MatchLabels))
		for key, value := range s.MatchLabels {
			out.MatchLabels[key] = string(value)
		}
	}
	for _, e := range s.MatchExpressions {
		values := make([]string, 0, len(e.Values))
		for _, value := range e.Values {
			values = append(values, string(value))
		}
		out.MatchExpressions = append(out.MatchExpressions, metav1.LabelSelectorRequirement{Key: e.Key, Operator: e.Operator, Values: values})
	}
	return out
}
