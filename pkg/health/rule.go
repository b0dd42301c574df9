// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package health

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/google/cel-go/cel"

	appsv1alpha1 "github.com/masthead-dev/masthead/apis/apps/v1alpha1"
	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/condition"
	"github.com/masthead-dev/masthead/pkg/expression"
)

// maxCompilerMessage bounds the compiler's message.
const maxCompilerMessage = 1024

// A Rule is a compiled HealthRule. It is immutable and safe for concurrent use.
type Rule struct {
	name      string
	selectors []Selector
	spec      fleetv1alpha1.HealthRuleSpec

	// shipped says that the rule is in the library.
	shipped bool

	// compile builds the program, once.
	compile func() *program
}

// program is a compiled rule.
type program struct {
	steps []step

	// message is the message for an unhealthy object; nil for the object's own.
	message cel.Program
	err     error
}

// step is one expression of a rule, and the result if it is true.
type step struct {
	expression string
	result     Result
	program    cel.Program
}

// Compile makes a rule out of the spec of the named HealthRule. Err reports whether it is valid. An invalid rule still
// applies: the objects of its kinds are Unknown, as its result cannot be known.
func Compile(name string, spec fleetv1alpha1.HealthRuleSpec) *Rule {
	compiled := compile(spec, newEnvironments())
	return &Rule{name: name, selectors: selectors(spec), spec: spec, compile: func() *program { return compiled }}
}

// libraryRule is a rule that is compiled on first use.
func libraryRule(project string, spec fleetv1alpha1.HealthRuleSpec, env environments) *Rule {
	return &Rule{
		name: project, selectors: selectors(spec), spec: spec, shipped: true,
		compile: sync.OnceValue(func() *program { return compile(spec, env) }),
	}
}

// Err returns the compiler's error; nil if there is none. Its text is bounded, and on one line.
func (r *Rule) Err() error { return r.compile().err }

// Selectors returns the rule's selectors, in the order of its spec.
func (r *Rule) Selectors() []Selector { return slices.Clone(r.selectors) }

// Decides reports whether the rule always decides, so that no later rule is evaluated.
func (r *Rule) Decides() bool { return r.closed() || r.Err() != nil }

// closed reports whether the rule decides when none of its expressions is true.
func (r *Rule) closed() bool {
	if r.spec.Otherwise == "" {
		return r.spec.Healthy != ""
	}
	return r.spec.Otherwise != fleetv1alpha1.OtherwiseNext
}

// mentions reports whether the rule's expressions take into account that a condition is True.
func (r *Rule) mentions(conditionType string) bool {
	expressions := r.spec.Degraded + r.spec.Suspended + r.spec.Progressing + r.spec.Healthy
	return strings.Contains(expressions, "isTrue('"+conditionType+"')") || strings.Contains(expressions, "condition('"+conditionType+"')")
}

func compile(spec fleetv1alpha1.HealthRuleSpec, environments environments) *program {
	p := &program{}
	env, err := environments.any()
	if err != nil {
		p.err = err
		return p
	}
	var errs []string
	for _, s := range []struct {
		expression, source, reason string
		health                     appsv1alpha1.Health
	}{
		{"degraded", spec.Degraded, appsv1alpha1.ReasonRuleDegraded, appsv1alpha1.HealthDegraded},
		{"suspended", spec.Suspended, appsv1alpha1.ReasonRuleSuspended, appsv1alpha1.HealthSuspended},
		{"progressing", spec.Progressing, appsv1alpha1.ReasonRuleProgressing, appsv1alpha1.HealthProgressing},
		{"healthy", spec.Healthy, "", appsv1alpha1.HealthHealthy},
	} {
		if s.source == "" {
			continue
		}
		env := env
		if s.health == appsv1alpha1.HealthHealthy && spec.StaleStatus == fleetv1alpha1.StaleStatusProgressing {
			if env, err = environments.latest(); err != nil {
				p.err = err
				return p
			}
		}
		program, err := expression.Compile(env, s.source, cel.BoolType, costs{})
		if err != nil {
			errs = append(errs, s.expression+": "+err.Error())
			continue
		}
		p.steps = append(p.steps, step{expression: s.expression, program: program, result: Result{Health: s.health, Reason: s.reason}})
	}
	if spec.Message != "" {
		if p.message, err = expression.Compile(env, spec.Message, cel.StringType, costs{}); err != nil {
			errs = append(errs, "message: "+err.Error())
		}
	}
	if len(errs) > 0 {
		p.err = errors.New(condition.Text(strings.Join(errs, "; "), maxCompilerMessage))
	}
	return p
}

// environments are the CEL environments: that of pkg/expression plus Masthead's helpers. Each is built once, on first
// use.
type environments struct {
	// any is for all expressions but those of latest.
	any func() (*cel.Env, error)

	// latest is for the expression healthy, where a status about an older generation does not count.
	latest func() (*cel.Env, error)
}

func newEnvironments() environments {
	environment := func(latest bool) func() (*cel.Env, error) {
		return sync.OnceValues(func() (*cel.Env, error) {
			return expression.NewEnvironment(append([]cel.EnvOption{cel.Variable(objectVariable, cel.DynType)}, helpers(latest)...)...)
		})
	}
	return environments{any: environment(false), latest: environment(true)}
}

// assess evaluates the rule for an object. It returns false if the rule does not decide.
func (r *Rule) assess(object fields, statusExpected bool) (Result, bool) {
	p := r.compile()
	if p.err != nil {
		return unknown(appsv1alpha1.ReasonRuleFailed, r.described()+" cannot be compiled"), true
	}
	if r.spec.StaleStatus == fleetv1alpha1.StaleStatusProgressing && !isObserved(object) {
		return notLatest(), true
	}
	input := map[string]any{objectVariable: map[string]any(object)}
	for _, s := range p.steps {
		yes, err := evaluate[bool](s.program, input)
		if err != nil {
			if statusExpected && object.hasNoStatus() {
				// Most rules read a status field, and most new objects lack it at first.
				return noStatus(true), true
			}
			return unknown(appsv1alpha1.ReasonRuleFailed, fmt.Sprintf("%s, %s: %v", r.described(), s.expression, err)), true
		}
		if yes {
			return r.say(p, s.result, object, input, s.expression+" is true"), true
		}
	}
	switch {
	case r.spec.Otherwise == fleetv1alpha1.OtherwiseUnknown && object.hasNoStatus():
		return noStatus(true), true
	case r.spec.Otherwise == fleetv1alpha1.OtherwiseUnknown:
		return r.say(p, unknown(appsv1alpha1.ReasonNotUnderstood, ""), object, input, "no expression is true"), true
	case r.closed():
		return r.say(p, progressing(appsv1alpha1.ReasonRuleNotHealthy, ""), object, input, "healthy is false"), true
	}
	return Result{}, false
}

func (r *Rule) described() string {
	if r.shipped {
		return "The rule of the library for " + r.name
	}
	return fmt.Sprintf("HealthRule %q", r.name)
}

// say adds the message and, for library rules, the object's own reason. A message that fails does not change the
// health.
func (r *Rule) say(p *program, result Result, object fields, input map[string]any, what string) Result {
	if result.Health == appsv1alpha1.HealthHealthy {
		return result
	}
	if r.shipped {
		result = explained(result, object)
	}
	if p.message == nil {
		result.Message = messageOr(r.theirs(object.part("status")), r.fallback(what))
		return result
	}
	message, err := evaluate[string](p.message, input)
	if err != nil {
		result.Message = fmt.Sprintf("%s; its message failed: %v", r.fallback(what), err)
	} else {
		result.Message = messageOr(message, r.fallback(what))
	}
	return result
}

// theirs returns the object's own message. Only the library knows that status.message of its kinds describes problems.
func (r *Rule) theirs(status fields) string {
	if r.shipped {
		return complaint(status)
	}
	return complaining(status).text("message")
}

// fallback is the message for an object that has none.
func (r *Rule) fallback(what string) string {
	if r.shipped {
		return "Its status has no details"
	}
	return r.described() + ": " + what
}

// explained gives a library Result the object's own reason: that of its worst condition, or its phase.
func explained(result Result, object fields) Result {
	status := object.part("status")
	if len(status) == 0 {
		if result.Health == appsv1alpha1.HealthProgressing {
			result.Reason = appsv1alpha1.ReasonNotObserved
		}
		return result
	}
	if c := complaining(status); c.text("reason") != "" {
		result.Reason = reasonOr(c.text("reason"), result.Reason)
	} else if word := findPhase(status); word != "" && result.Reason != appsv1alpha1.ReasonNotUnderstood {
		result.Reason = reasonOr(word, result.Reason)
	}
	return result
}

// evaluate returns the value of an expression.
func evaluate[T bool | string](program cel.Program, input map[string]any) (T, error) {
	var none T
	value, err := expression.Evaluate(program, input)
	if err != nil {
		return none, err
	}
	result, ok := value.Value().(T)
	if !ok {
		return none, fmt.Errorf("its value is of the type %s, not %T", value.Type().TypeName(), none)
	}
	return result, nil
}
