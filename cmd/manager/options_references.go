// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/util/validation"
)

// ReferenceOptions configure generic references.
type ReferenceOptions struct {
	// HubClass is the EnrollmentClass whose references settings apply to objects of the hub itself. Empty: none are
	// resolved there.
	HubClass string `json:"hubClass"`
}

// bind makes a flag of each option.
func (o *ReferenceOptions) bind(f *pflag.FlagSet) {
	f.StringVar(&o.HubClass, "hub-references-class", o.HubClass,
		"EnrollmentClass whose references section applies to the hub's own objects; empty for none")
}

// validate reports what is wrong.
func (o *ReferenceOptions) validate(problem func(wrong bool, format string, args ...any)) {
	if o.HubClass != "" {
		wrong := validation.IsDNS1123Subdomain(o.HubClass)
		problem(len(wrong) > 0, "hub-references-class: %q is not the name of an EnrollmentClass: %s", o.HubClass, strings.Join(wrong, "; "))
	}
}
