// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package health

import (
	"slices"
	"strconv"
	"strings"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"k8s.io/apiserver/pkg/cel/library"
)

// maxTypes is how many types of conditions one call of isUnmet may name.
const maxTypes = 8

// objectVariable is the object in an expression.
const objectVariable = "object"

// helpers are the functions that expressions have in addition to those of Kubernetes. Each is a method of objects and
// their parts; without a receiver it applies to the object: phase() is object.phase(). None fails: a missing value, or
// one of another type, is empty. They are methods because a function cannot see the variable. With latest, a condition
// of the object that is True for an older generation is not True.
func helpers(latest bool) []cel.EnvOption {
	text := cel.StringType
	options := make([]cel.EnvOption, 0, 24)
	macros := make([]cel.Macro, 0, 24)
	add := func(name string, result *cel.Type, bind func(part fields, arguments []ref.Val) ref.Val, arguments ...*cel.Type) {
		binding := cel.FunctionBinding(func(values ...ref.Val) ref.Val {
			part, _ := values[0].Value().(map[string]any)
			return bind(part, values[1:])
		})
		options = append(options, cel.Function(name,
			cel.MemberOverload("masthead_"+name+strconv.Itoa(len(arguments)), append([]*cel.Type{cel.DynType}, arguments...), result, binding)))
		macros = append(macros, cel.GlobalMacro(name, len(arguments),
			func(f cel.MacroExprFactory, _ ast.Expr, arguments []ast.Expr) (ast.Expr, *cel.Error) {
				return f.NewMemberCall(name, f.NewIdent(objectVariable), arguments...), nil
			}))
	}
	add("condition", cel.MapType(text, text), func(o fields, a []ref.Val) ref.Val {
		return types.NewStringStringMap(types.DefaultTypeAdapter, o.anyCondition(formatValue(a[0])))
	}, text)
	add("isTrue", cel.BoolType, func(o fields, a []ref.Val) ref.Val {
		c := o.rawCondition(formatValue(a[0]))
		return types.Bool(conditionStatus(c) == statusTrue && (!latest || o.isLatest(c)))
	}, text)
	add("isFalse", cel.BoolType, func(o fields, a []ref.Val) ref.Val {
		return types.Bool(conditionStatus(o.rawCondition(formatValue(a[0]))) == statusFalse)
	}, text)
	for n := range maxTypes {
		add("isUnmet", cel.BoolType, func(o fields, a []ref.Val) ref.Val {
			return types.Bool(slices.ContainsFunc(a, func(name ref.Val) bool { return o.isUnmet(formatValue(name)) }))
		}, slices.Repeat([]*cel.Type{text}, n+1)...)
	}
	add("refersTo", cel.BoolType, func(o fields, a []ref.Val) ref.Val {
		reference, is := a[0].Value().(map[string]any)
		return types.Bool(is && sameParent(o.part("parentRef"), reference))
	}, cel.DynType)
	add("phase", text, func(o fields, _ []ref.Val) ref.Val { return types.String(findPhase(o.part("status"))) })
	add("observed", cel.BoolType, func(o fields, _ []ref.Val) ref.Val { return types.Bool(isObserved(o)) })
	add("observes", cel.BoolType, func(o fields, a []ref.Val) ref.Val {
		generation, _ := a[0].Value().(int64)
		return types.Bool(observes(o, generation))
	}, cel.IntType)
	add("text", text, func(o fields, a []ref.Val) ref.Val { return types.String(asText(o.atPath(formatValue(a[0])))) }, text)
	add("flag", cel.BoolType, func(o fields, a []ref.Val) ref.Val {
		return types.Bool(strings.EqualFold(asText(o.atPath(formatValue(a[0]))), "true"))
	}, text)
	add("number", cel.IntType, func(o fields, a []ref.Val) ref.Val { return numberAt(o, formatValue(a[0]), 0) }, text)
	add("number", cel.IntType, func(o fields, a []ref.Val) ref.Val {
		otherwise, _ := a[1].Value().(int64)
		return numberAt(o, formatValue(a[0]), otherwise)
	}, text, cel.IntType)
	add("items", cel.ListType(cel.DynType), func(o fields, a []ref.Val) ref.Val {
		list, _ := o.atPath(formatValue(a[0])).([]any)
		return types.DefaultTypeAdapter.NativeToValue(list)
	}, text)
	add("saysFailed", cel.BoolType, func(_ fields, a []ref.Val) ref.Val { return types.Bool(saysFailed(formatValue(a[0]))) }, text)
	return append(options, cel.Macros(macros...))
}

func formatValue(value ref.Val) string {
	text, _ := value.Value().(string)
	return text
}

func numberAt(o fields, path string, otherwise int64) ref.Val {
	if n, ok := decimal(o.atPath(path)); ok {
		return types.Int(n)
	}
	return types.Int(otherwise)
}

// asText returns a value of an object as text; empty if it is not text.
func asText(value any) string {
	switch v := value.(type) {
	case string:
		return v
	case bool:
		return strconv.FormatBool(v)
	}
	if n, ok := integer(value); ok {
		return strconv.FormatInt(n, 10)
	}
	return ""
}

// atPath returns the value at a path such as "status.phase"; nil if there is none.
func (f fields) atPath(path string) any {
	var value any = map[string]any(f)
	for {
		parent, ok := value.(map[string]any)
		if !ok {
			return nil
		}
		name, rest, more := strings.Cut(path, ".")
		value = parent[name]
		if !more {
			return value
		}
		path = rest
	}
}

// conditions returns the conditions of an object, or of a part that has its own.
func (f fields) conditions() []any {
	list, ok := f["conditions"].([]any)
	if !ok {
		list, _ = f.at("status", "conditions").([]any)
	}
	return list
}

// rawCondition returns the condition of a type of an object, or of a part that has its own; nil if there is none.
func (f fields) rawCondition(kind string) fields {
	for _, value := range f.conditions() {
		if c, ok := value.(map[string]any); ok && c["type"] == kind {
			return c
		}
	}
	return nil
}

// isUnmet reports whether there is a condition of a type that is not True, or that is True for an older generation.
func (f fields) isUnmet(kind string) bool {
	c := f.rawCondition(kind)
	state := conditionStatus(c)
	return state != "" && (state != statusTrue || !f.isLatest(c))
}

// sameParent reports whether a parent reference in a status matches the one in a spec. Fields that the spec omits match
// anything. A status may omit the namespace, which then is that of the object.
func sameParent(status, spec fields) bool {
	for _, name := range [...]string{"name", "namespace", "sectionName", "port", "kind", "group"} {
		want, have := asText(spec[name]), asText(status[name])
		if want != have && want != "" && (name != "namespace" && name != "kind" && name != "group" || have != "") {
			return false
		}
	}
	return true
}

// anyCondition is a condition for an expression. It has all fields, so expressions need no has() checks.
func (f fields) anyCondition(kind string) map[string]string {
	c := f.rawCondition(kind)
	return map[string]string{"type": c.text("type"), "status": conditionStatus(c), "reason": c.text("reason"), "message": c.text("message")}
}

// costs bounds the total cost of the helpers, as for those of Kubernetes: a helper that scans a list of conditions
// costs as much as a loop over it.
type costs struct{ library.CostEstimator }

// CallCost returns the cost of one call; nil for other functions.
func (c costs) CallCost(function, overload string, arguments []ref.Val, result ref.Val) *uint64 {
	cost := uint64(1)
	part := func() fields {
		part, _ := arguments[0].Value().(map[string]any)
		return part
	}
	switch function {
	case "condition", "isTrue", "isFalse", "observes":
		cost += uint64(len(part().conditions()))
	case "isUnmet":
		cost += uint64(len(part().conditions())) * uint64(len(arguments[1:]))
	case "observed":
		status := part().part("status")
		list, _ := status["conditions"].([]any)
		cost += uint64(len(list))
		for _, name := range [...]string{"parents", "ancestors"} {
			parents, _ := status[name].([]any)
			cost += uint64(len(parents))
		}
		for _, conditions := range status.perParent() {
			cost += uint64(len(conditions))
		}
	case "phase":
		// It reads the ends of each text that it passes.
		cost += uint64(len(formatValue(result))) / 8
	case "refersTo":
	case "saysFailed", "text", "flag", "number", "items":
		if len(arguments) > 1 {
			cost += uint64(len(formatValue(arguments[1]))) / 8
		}
	default:
		return c.CostEstimator.CallCost(function, overload, arguments, result)
	}
	return &cost
}
