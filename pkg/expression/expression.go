// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package expression

import (
	"errors"
	"fmt"
	"strings"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/interpreter"
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/apiserver/pkg/cel/environment"
	"k8s.io/apiserver/pkg/cel/library"
)

// CostLimit is the cost limit of one evaluation, in Kubernetes' units: enough to visit each of a thousand entries of a
// list. It is a hundredth of what the API server allows a policy, because the time to count the cost grows faster than
// the cost: within one loop, with its square. BenchmarkCostLimit of pkg/health measures the worst case.
const CostLimit = 10_000

// ErrTooExpensive is the error of an evaluation that exceeded the cost limit.
var ErrTooExpensive = errors.New("it exceeds the cost limit for this object")

// NewEnvironment makes a CEL environment with the language of Kubernetes plus the options. It takes milliseconds.
func NewEnvironment(options ...cel.EnvOption) (*cel.Env, error) {
	set, err := environment.MustBaseEnvSet(version.MajorMinor(1, 36)).Extend(environment.VersionedOptions{
		IntroducedVersion: version.MajorMinor(1, 0),
		EnvOptions:        options,
	})
	if err != nil {
		return nil, fmt.Errorf("cannot create the environment of the expressions: %w", err)
	}
	return set.NewExpressionsEnv(), nil
}

// Compile compiles an expression. If want is not nil, its value has that type, or one known only at evaluation. costs
// gives the cost of function calls; nil means Kubernetes' costs.
func Compile(env *cel.Env, source string, want *cel.Type, costs interpreter.ActualCostEstimator) (cel.Program, error) {
	ast, err := parse(env, source)
	if err != nil {
		return nil, err
	}
	if got := ast.OutputType(); want != nil && !got.IsExactType(want) && !got.IsExactType(cel.DynType) {
		return nil, fmt.Errorf("its value is of the type %s, and must be of the type %s", got, want)
	}
	return newProgram(env, ast, costs, CostLimit)
}

func parse(env *cel.Env, source string) (*cel.Ast, error) {
	ast, issues := env.Compile(source)
	return ast, mistakes(issues)
}

// mistakes returns what is wrong with an expression, on one line.
func mistakes(issues *cel.Issues) error {
	if issues.Err() == nil {
		return nil
	}
	var messages []string
	for _, e := range issues.Errors() {
		messages = append(messages, fmt.Sprintf("%d:%d: %s", e.Location.Line(), e.Location.Column()+1, e.Message))
	}
	return errors.New(strings.Join(messages, ", "))
}

func newProgram(env *cel.Env, ast *cel.Ast, costs interpreter.ActualCostEstimator, limit uint64) (cel.Program, error) {
	if costs == nil {
		costs = &library.CostEstimator{}
	}
	program, err := env.Program(ast, cel.CostTracking(costs), cel.CostLimit(limit))
	if err != nil {
		return nil, fmt.Errorf("cannot create a program from it: %w", err)
	}
	return program, nil
}

// Evaluate returns the value of an expression. The error is ErrTooExpensive if it costs more than its limit.
func Evaluate(program cel.Program, input map[string]any) (ref.Val, error) {
	value, _, err := program.Eval(input)
	if cancelled := (interpreter.EvalCancelledError{}); errors.As(err, &cancelled) {
		return nil, ErrTooExpensive
	}
	return value, err
}
