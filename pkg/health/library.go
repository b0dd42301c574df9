// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package health

import (
	"embed"
	"fmt"
	"io/fs"
	"path"

	"sigs.k8s.io/yaml"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
)

// libraryFiles are the shipped rules, a file for each project.
//
//go:embed library/*.yaml
var libraryFiles embed.FS

// A Library is the set of rules shipped with Masthead. It is immutable. A rule is compiled when the first object of its
// kinds is assessed.
type Library struct {
	// Projects are the files, in alphabetical order.
	Projects []Project

	rules ruleSet
}

// A Project is one file of the library: the rules for the kinds of one project.
type Project struct {
	// Name is the project's common name.
	Name string `json:"name"`

	// Repository holds its types, for example github.com/cert-manager/cert-manager.
	Repository string `json:"repository"`

	// File is the name of the file in the folder of the library.
	File string `json:"-"`

	// Rules of its kinds.
	Rules []LibraryRule `json:"rules"`
}

// A LibraryRule is one rule of the library. A HealthRule with the same spec has the same effect, but here an absent
// staleStatus means Progressing.
type LibraryRule struct {
	fleetv1alpha1.HealthRuleSpec `json:",inline"`

	// Source is the type and the file in which the project defines the status. It can move between the project's versions.
	Source string `json:"source"`

	rule *Rule
}

// NewLibrary reads the shipped rules.
func NewLibrary() (*Library, error) {
	entries, err := fs.Glob(libraryFiles, "library/*.yaml")
	if err != nil {
		return nil, fmt.Errorf("cannot list the library of health rules: %w", err)
	}
	l := &Library{Projects: make([]Project, len(entries))}
	env := newEnvironments()
	var rules []*Rule
	for i, name := range entries {
		data, err := libraryFiles.ReadFile(name)
		if err != nil {
			return nil, fmt.Errorf("cannot read the library of health rules: %w", err)
		}
		project := &l.Projects[i]
		project.File = path.Base(name)
		if err := yaml.UnmarshalStrict(data, project); err != nil {
			return nil, fmt.Errorf("cannot parse %q: %w", name, err)
		}
		for n := range project.Rules {
			r := &project.Rules[n]
			if r.StaleStatus == "" {
				r.StaleStatus = fleetv1alpha1.StaleStatusProgressing
			}
			r.rule = libraryRule(project.Name, r.HealthRuleSpec, env)
			rules = append(rules, r.rule)
		}
	}
	l.rules = newRuleSet(rules)
	return l, nil
}

// New returns an Assessor that applies the rules, then those of the library, and then Masthead's built-in checks. A
// more specific rule takes precedence over a less specific one, and of two equally specific ones the library's comes
// second.
func (l *Library) New(rules ...*Rule) Assessor { return newAssessor(l.rules, rules) }
