// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package verdict

import (
	"fmt"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/ext"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// fluxExpressions is an entry of healthCheckExprs of Flux.
type fluxExpressions struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	InProgress string `json:"inProgress"`
	Failed     string `json:"failed"`
	Current    string `json:"current"`
}

// evaluate computes the verdict in the order that Flux documents: a generation that was not observed, InProgress,
// Failed, Current, and InProgress if none of them is true. The top-level fields of the object are the variables.
func (e fluxExpressions) evaluate(object *unstructured.Unstructured) (status.Status, error) {
	observed, ok, err := unstructured.NestedInt64(object.Object, "status", "observedGeneration")
	if err != nil {
		return "", err
	}
	if ok && observed != object.GetGeneration() {
		return status.InProgressStatus, nil
	}
	for _, step := range []struct {
		expression string
		status     status.Status
	}{{e.InProgress, status.InProgressStatus}, {e.Failed, status.FailedStatus}, {e.Current, status.CurrentStatus}} {
		if step.expression == "" {
			continue
		}
		met, err := isTrue(step.expression, object)
		if err != nil {
			return "", fmt.Errorf("%s: %w", step.expression, err)
		}
		if met {
			return step.status, nil
		}
	}
	return status.InProgressStatus, nil
}

func isTrue(expression string, object *unstructured.Unstructured) (bool, error) {
	options := []cel.EnvOption{ext.Strings()}
	for field := range object.Object {
		options = append(options, cel.Variable(field, cel.DynType))
	}
	env, err := cel.NewEnv(options...)
	if err != nil {
		return false, err
	}
	ast, issues := env.Compile(expression)
	if issues.Err() != nil {
		return false, issues.Err()
	}
	program, err := env.Program(ast)
	if err != nil {
		return false, err
	}
	value, _, err := program.Eval(object.Object)
	if err != nil {
		return false, err
	}
	met, ok := value.Value().(bool)
	if !ok {
		return false, fmt.Errorf("the expression is of type %s", value.Type())
	}
	return met, nil
}
