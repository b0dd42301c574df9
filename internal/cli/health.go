// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/json"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/internal/cli/terminal"
	"github.com/masthead-dev/masthead/pkg/health"
)

// maxDocuments is the maximum size that is read of a file.
const maxDocuments = 64 << 20

// healthRow is the health of one object.
type healthRow struct {
	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
	Health    string `json:"health"`
	Reason    string `json:"reason,omitempty"`
	Message   string `json:"message,omitempty"`
}

func newHealth(a *app) *cobra.Command {
	parent := &cobra.Command{
		Use:     "health",
		Short:   "Test how Masthead assesses the health of objects",
		Long:    "Test, without a cluster, how Masthead assesses the health of objects: by HealthRules, by the built-in rules, and by what it knows about Kubernetes' own kinds.",
		Example: `  kubectl masthead health test -f object.yaml`,
	}
	var files, rules []string
	test := a.withOutput(&cobra.Command{
		Use:   "test -f FILE",
		Short: "Assess the health of objects in files",
		Long: `Assess the health of objects in files, as Applications assess their components. No cluster is queried. HealthRules in the
files of --rule take precedence. A HealthRule that cannot be compiled is an error.`,
		Example: `  # How is this object assessed?
  kubectl masthead health test -f object.yaml

  # By a HealthRule that is not in the hub yet
  kubectl masthead health test -f object.yaml --rule rule.yaml

  # Objects of a cluster
  kubectl get certificates -A -o yaml | kubectl masthead health test -f -`,
		Args: noArguments,
		RunE: func(_ *cobra.Command, _ []string) error {
			if len(files) == 0 {
				return misused("specify the objects: -f FILE, or -f - for the standard input")
			}
			rows, err := a.judge(files, rules)
			if err != nil {
				return err
			}
			return a.print(rows, func(bool) error {
				t := terminal.Table{Columns: []string{"KIND", "NAMESPACE", "NAME", "HEALTH", "REASON", "MESSAGE"}}
				for _, r := range rows {
					t.Rows = append(t.Rows, []string{r.Kind, r.Namespace, r.Name, r.Health, r.Reason, r.Message})
				}
				return t.Write(a.Streams.Out)
			})
		},
	})
	test.Flags().StringSliceVarP(&files, "filename", "f", nil, "Files with objects, or - for the standard input")
	test.Flags().StringSliceVar(&rules, "rule", nil, "Files with HealthRules that take precedence")
	parent.AddCommand(test)
	return parent
}

func (a *app) judge(files, ruleFiles []string) ([]healthRow, error) {
	library, err := health.NewLibrary()
	if err != nil {
		return nil, err
	}
	var rules []*health.Rule
	documents, err := a.documents(ruleFiles)
	if err != nil {
		return nil, err
	}
	for _, d := range documents {
		rule := &fleetv1alpha1.HealthRule{}
		if d.GetKind() != "HealthRule" {
			return nil, fmt.Errorf("%s %q is not a HealthRule", d.GetKind(), d.GetName())
		}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(d.Object, rule); err != nil {
			return nil, fmt.Errorf("cannot read the HealthRule %q: %w", d.GetName(), err)
		}
		compiled := health.Compile(rule.Name, rule.Spec)
		if err := compiled.Err(); err != nil {
			return nil, fmt.Errorf("cannot compile the HealthRule %q: %w", rule.Name, err)
		}
		rules = append(rules, compiled)
	}
	if documents, err = a.documents(files); err != nil {
		return nil, err
	}
	judge := library.New(rules...)
	rows := make([]healthRow, 0, len(documents))
	for _, d := range documents {
		r := judge.Assess(d, true)
		rows = append(rows, healthRow{
			Kind: d.GetKind(), Namespace: d.GetNamespace(), Name: d.GetName(), Health: string(r.Health), Reason: r.Reason, Message: r.Message,
		})
	}
	return rows, nil
}

// documents reads the objects of files; those of lists individually.
func (a *app) documents(files []string) ([]*unstructured.Unstructured, error) {
	var out []*unstructured.Unstructured
	for _, name := range files {
		list, err := a.readDocuments(name)
		if err != nil {
			return nil, fmt.Errorf("cannot read %q: %w", name, err)
		}
		out = append(out, list...)
	}
	return out, nil
}

func (a *app) readDocuments(name string) ([]*unstructured.Unstructured, error) {
	input, err := a.open(name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = input.Close() }()
	decoder := utilyaml.NewYAMLOrJSONDecoder(io.LimitReader(input, maxDocuments), 4096)
	var out []*unstructured.Unstructured
	for {
		raw := runtime.RawExtension{}
		err := decoder.Decode(&raw)
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		if err != nil {
			return nil, err
		}
		if len(raw.Raw) == 0 || string(raw.Raw) == "null" {
			continue
		}
		u := &unstructured.Unstructured{}
		// Numbers must have the types of API servers' answers.
		if err := json.Unmarshal(raw.Raw, &u.Object); err != nil {
			return nil, err
		}
		if !u.IsList() {
			out = append(out, u)
			continue
		}
		if err := u.EachListItem(func(item runtime.Object) error {
			if one, ok := item.(*unstructured.Unstructured); ok {
				out = append(out, one)
			}
			return nil
		}); err != nil {
			return nil, err
		}
	}
}
