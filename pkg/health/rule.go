// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package health

import (
	"errors"
	"fmt"
	"strings"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/interpreter"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/apiserver/pkg/cel/environment"

	appsv1alpha1 "github.com/masthead-dev/masthead/apis/apps/v1alpha1"
	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
)

// costLimit is what the evaluation of one expression may cost, in the units of Kubernetes: enough to look at each of a thousand
// entries of a list. It is a hundredth of what the API server allows a policy, because the time that it takes to count the cost grows
// faster than the cost: within one loop, with its square. BenchmarkCostLimit measures the worst.
const costLimit = 10_000

// maxCompilerMessage bounds what is repeated of what the compiler says.
const maxCompilerMessage = 1024

// A Rule is a HealthRule that can be followed. It does not change, and can be used from everywhere.
type Rule struct {
	name  string
	kind  schema.GroupKind
	steps []step

	// message is what is said about an object that is not healthy; nil for a text of our own.
	message cel.Program

	// closed is whether the rule says when an object is healthy. Then it always decides.
	closed bool
	err    error
}

// step is one question of a rule, and the answer to it if it is true.
type step struct {
	expression string
	result     Result
	program    cel.Program
}

// Compile makes a rule out of the spec of the HealthRule of that name. Err says whether it can be followed. One that cannot is a rule
// all the same: the objects of its kind are Unknown, as nobody knows what it would have said.
func Compile(name string, spec fleetv1alpha1.HealthRuleSpec) *Rule {
	r := &Rule{name: name, kind: schema.GroupKind{Group: spec.Group, Kind: spec.Kind}, closed: spec.Healthy != ""}
	r.err = r.compile(spec)
	return r
}

// Err is what the compiler has to say about the rule; nil if nothing. Its text is bounded, and on one line.
func (r *Rule) Err() error { return r.err }

// Kind is the kind that the rule is for.
func (r *Rule) Kind() schema.GroupKind { return r.kind }

func (r *Rule) compile(spec fleetv1alpha1.HealthRuleSpec) error {
	env, err := celEnvironment()
	if err != nil {
		return err
	}
	var errs []string
	for _, s := range []struct {
		expression, source, reason string
		health                     appsv1alpha1.Health
	}{
		{"degraded", spec.Degraded, ReasonRuleDegraded, appsv1alpha1.HealthDegraded},
		{"suspended", spec.Suspended, ReasonRuleSuspended, appsv1alpha1.HealthSuspended},
		{"progressing", spec.Progressing, ReasonRuleProgressing, appsv1alpha1.HealthProgressing},
		{"healthy", spec.Healthy, "", appsv1alpha1.HealthHealthy},
	} {
		if s.source == "" {
			continue
		}
		program, err := program(env, s.source, cel.BoolType)
		if err != nil {
			errs = append(errs, s.expression+": "+err.Error())
			continue
		}
		r.steps = append(r.steps, step{expression: s.expression, program: program, result: Result{Health: s.health, Reason: s.reason}})
	}
	if spec.Message != "" {
		if r.message, err = program(env, spec.Message, cel.StringType); err != nil {
			errs = append(errs, "message: "+err.Error())
		}
	}
	if len(errs) > 0 {
		return errors.New(bounded(strings.Join(errs, "; "), maxCompilerMessage))
	}
	return nil
}

// celEnvironment has the language and the functions that the policies and the validation rules of Kubernetes v1.36 have. The
// version is fixed, so that a new version of a library changes the meaning of no rule.
func celEnvironment() (*cel.Env, error) {
	set, err := environment.MustBaseEnvSet(version.MajorMinor(1, 36)).Extend(environment.VersionedOptions{
		IntroducedVersion: version.MajorMinor(1, 0),
		EnvOptions:        []cel.EnvOption{cel.Variable("object", cel.DynType)},
	})
	if err != nil {
		return nil, fmt.Errorf("cannot make the environment of the expressions: %w", err)
	}
	return set.NewExpressionsEnv(), nil
}

// program compiles an expression whose value is of a type, or of one that only the object decides.
func program(env *cel.Env, source string, want *cel.Type) (cel.Program, error) {
	ast, issues := env.Compile(source)
	if issues.Err() != nil {
		var messages []string
		for _, e := range issues.Errors() {
			messages = append(messages, fmt.Sprintf("%d:%d: %s", e.Location.Line(), e.Location.Column()+1, e.Message))
		}
		return nil, errors.New(strings.Join(messages, ", "))
	}
	if got := ast.OutputType(); !got.IsExactType(want) && !got.IsExactType(cel.DynType) {
		return nil, fmt.Errorf("its value is of the type %s, and must be of the type %s", got, want)
	}
	program, err := env.Program(ast, cel.CostLimit(costLimit))
	if err != nil {
		return nil, fmt.Errorf("cannot make a program of it: %w", err)
	}
	return program, nil
}

// assess asks the rule about an object. It returns false if the rule has nothing to say.
func (r *Rule) assess(object fields, statusExpected bool) (Result, bool) {
	if r.err != nil {
		return unknown(ReasonRuleFailed, fmt.Sprintf("HealthRule %q cannot be compiled", r.name)), true
	}
	input := map[string]any{"object": map[string]any(object)}
	for _, s := range r.steps {
		yes, err := evaluate[bool](s.program, input)
		if err != nil {
			if statusExpected && object.hasNoStatus() {
				// Most rules ask for a field of the status, and most objects lack it for their first moments.
				return noStatus(true), true
			}
			return unknown(ReasonRuleFailed, fmt.Sprintf("HealthRule %q, %s: %v", r.name, s.expression, err)), true
		}
		if yes {
			return r.say(s.result, input, s.expression+" is true"), true
		}
	}
	if r.closed {
		return r.say(progressing(ReasonRuleNotHealthy, ""), input, "healthy is false"), true
	}
	return Result{}, false
}

// say adds the message. A message that fails does not change how the object fares.
func (r *Rule) say(result Result, input map[string]any, what string) Result {
	if result.Health == appsv1alpha1.HealthHealthy {
		return result
	}
	result.Message = fmt.Sprintf("HealthRule %q: %s", r.name, what)
	if r.message == nil {
		return result
	}
	message, err := evaluate[string](r.message, input)
	if err != nil {
		result.Message += fmt.Sprintf("; its message failed: %v", err)
	} else {
		result.Message = messageOr(message, result.Message)
	}
	return result
}

// evaluate returns the value of an expression.
func evaluate[T bool | string](program cel.Program, input map[string]any) (T, error) {
	var none T
	value, _, err := program.Eval(input)
	if cancelled := (interpreter.EvalCancelledError{}); errors.As(err, &cancelled) {
		return none, errors.New("it costs too much on this object")
	}
	if err != nil {
		return none, err
	}
	result, ok := value.Value().(T)
	if !ok {
		return none, fmt.Errorf("its value is of the type %s, not %T", value.Type().TypeName(), none)
	}
	return result, nil
}
