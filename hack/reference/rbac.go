// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"
)

const rbacPreface = `# RBAC

` + generated + `
Every rule of every role of Masthead, with the reason that stands beside it in the file. [Rights](../rights.md) says how
to give less.
`

// place is a place where roles are applied.
type place struct{ title, about, pattern string }

func places() []place {
	return []place{
		{"In the hub", "`config/rbac`, a part of `config/default`.", "config/rbac/*.yaml"},
		{"In the hub, with imports", "`config/imports/base`.", "config/imports/base/*.yaml"},
		{"In the hub, with imports from a cloud", "`config/imports/eks`, `aks`, `gke`.", "config/imports/[aeg]k[se]/*.yaml"},
		{"In a workload cluster", "`config/workload`, where the kubeconfig is not an administrator's.", "config/workload/*.yaml"},
	}
}

// rbac returns the page of all rules.
func rbac(root string) (string, error) {
	var page strings.Builder
	fmt.Fprintf(&page, rbacPreface, "config/")
	for _, p := range places() {
		fmt.Fprintf(&page, "\n## %s\n\n%s\n", p.title, p.about)
		paths, err := filepath.Glob(filepath.Join(root, filepath.FromSlash(p.pattern)))
		if err != nil {
			return "", err
		}
		var bindings []rbacv1.ClusterRoleBinding
		for _, path := range paths {
			data, err := os.ReadFile(path) //nolint:gosec // A file of the repository.
			if err != nil {
				return "", err
			}
			for document := range strings.SplitSeq(string(data), "\n---\n") {
				if err := object(&page, &bindings, document); err != nil {
					return "", fmt.Errorf("cannot describe %s: %w", path, err)
				}
			}
		}
		bound(&page, bindings)
	}
	return page.String(), nil
}

// object describes a role, or collects a binding.
func object(page *strings.Builder, bindings *[]rbacv1.ClusterRoleBinding, document string) error {
	var role rbacv1.ClusterRole
	if err := yaml.Unmarshal([]byte(document), &role); err != nil {
		return err
	}
	switch role.Kind {
	case "ClusterRole", "Role":
		describe(page, role, comments(document))
	case "ClusterRoleBinding", "RoleBinding":
		var binding rbacv1.ClusterRoleBinding
		if err := yaml.UnmarshalStrict([]byte(document), &binding); err != nil {
			return err
		}
		*bindings = append(*bindings, binding)
	}
	return nil
}

// bound says whose roles are, in one sentence for all that a binding of their own name gives to the same subject.
func bound(page *strings.Builder, bindings []rbacv1.ClusterRoleBinding) {
	var subjects []string
	roles := map[string][]string{}
	for _, b := range bindings {
		of := "a " + b.Kind
		if b.Name == b.RoleRef.Name {
			of += " of the same name"
		} else {
			of += fmt.Sprintf(" `%s`", b.Name)
		}
		for _, s := range b.Subjects {
			subject := fmt.Sprintf("the %s `%s/%s` by %s", s.Kind, s.Namespace, s.Name, of)
			if roles[subject] == nil {
				subjects = append(subjects, subject)
			}
			roles[subject] = append(roles[subject], b.RoleRef.Name)
		}
	}
	for _, subject := range subjects {
		fmt.Fprintf(page, "\n%s\n", paragraph("Bound to "+subject+": "+code(roles[subject])+"."))
	}
}

// describe adds a row for each rule of a role.
func describe(page *strings.Builder, role rbacv1.ClusterRole, why []string) {
	fmt.Fprintf(page, "\n### %s %s\n", role.Kind, role.Name)
	if role.AggregationRule != nil {
		for _, selector := range role.AggregationRule.ClusterRoleSelectors {
			for label, value := range selector.MatchLabels {
				fmt.Fprintf(page, "\nWhat ClusterRoles with the label `%s: %q` grant.\n", label, value)
			}
		}
	}
	if len(role.Rules) == 0 {
		return
	}
	explained := slices.ContainsFunc(why, func(w string) bool { return w != "" })
	header, line := "", ""
	if explained {
		header, line = " Why |", "---|"
	}
	fmt.Fprintf(page, "\n| API groups | Resources | Verbs |%s\n|---|---|---|%s\n", header, line)
	for i, rule := range role.Rules {
		groups := slices.Clone(rule.APIGroups)
		for j, group := range groups {
			if group == "" {
				groups[j] = "core"
			}
		}
		resources := code(slices.Concat(rule.Resources, rule.NonResourceURLs))
		if len(rule.ResourceNames) > 0 {
			resources += " named " + code(rule.ResourceNames)
		}
		fmt.Fprintf(page, "| %s | %s | %s |", code(groups), resources, code(rule.Verbs))
		if explained {
			fmt.Fprintf(page, " %s |", cell(reasonAt(why, i)))
		}
		page.WriteString("\n")
	}
}

// comments are the comments above each rule in the file. A comment is about the rules below it, up to the next comment.
func comments(document string) []string {
	var all []string
	_, list, found := strings.Cut(document, "\nrules:")
	if !found {
		return nil
	}
	text, last := "", ""
	for line := range strings.Lines(list) {
		switch {
		case strings.HasPrefix(line, "#"):
			text += strings.TrimPrefix(line, "#")
		case strings.HasPrefix(line, "- "):
			if text != "" {
				last, text = text, ""
			}
			all = append(all, last)
		}
	}
	return all
}

// reasonAt is the reason of a rule. The rule before it may have given it.
func reasonAt(why []string, i int) string {
	switch {
	case i >= len(why):
		return ""
	case i > 0 && why[i] != "" && why[i] == why[i-1]:
		return "As above."
	default:
		return why[i]
	}
}
