// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package expression

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/google/cel-go/cel"
	celast "github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
)

// MaxLinearLength is the maximum length in bytes of an expression for CompileLinear.
const MaxLinearLength = 4096

// loopCostLimit is the cost limit of an expression with loops: enough for the conditions, ports or nodes of an object,
// and for a millisecond, see BenchmarkLinearLoop. An object has up to 128 expressions.
const loopCostLimit = 1000

// maxSeparator is the maximum length in bytes of the separator of join: it is repeated for each element.
const maxSeparator = 16

// LinearFunctions are the functions, besides operators, that CompileLinear allows, separated by spaces. Left out are
// those whose result can be a multiple of their arguments (replace, strings.quote, lists.range), those with
// disproportionate run time (matches, find, findAll, distinct, sets, quantity, semver), and those that need an API
// server (authorizer).
const LinearFunctions = "bool bytes double duration dyn int string timestamp type uint " +
	"charAt contains endsWith format indexOf join lastIndexOf lowerAscii size split startsWith substring trim upperAscii " +
	"first flatten isSorted last max min reverse slice sort sum " +
	"hasValue optional.none optional.of optional.ofNonZeroValue or orValue value " +
	"getDate getDayOfMonth getDayOfWeek getDayOfYear getFullYear getHours getMilliseconds getMinutes getMonth getSeconds " +
	"cidr containsCIDR containsIP family ip ip.isCanonical isCIDR isGlobalUnicast isIP isLinkLocalMulticast isLinkLocalUnicast " +
	"isLoopback isUnspecified masked prefixLength " +
	"getEscapedPath getHost getHostname getPort getQuery getScheme isURL url"

// linearOperators are the operators of the language, as named in an AST. The first is that of all and exists.
const linearOperators = "@not_strictly_false !_ -_ @in _!=_ _%_ _&&_ _*_ _+_ _-_ _/_ _<=_ _<_ _==_ _>=_ _>_ _?._ _?_:_ _[?_] _[_] _||_"

// longPrecision finds a precision of more than two digits in a format: %.1000000f yields a million digits.
var longPrecision = regexp.MustCompile(`%\.[0-9]{3,}`) //nolint:gochecknoglobals // A constant.

// A LinearProgram is an expression all of whose values have a size that is linear in its text and its input.
type LinearProgram struct {
	cel.Program

	// Uses is how often the expression uses a variable of the environment. This times the size of its input is about the
	// maximum size of a value. The caller must bound it.
	Uses int
}

// CompileLinear compiles an expression of a user who is not trusted with the manager's memory and time. Besides
// operators and has, only LinearFunctions are allowed, and loops (all, exists, filter, map) that are not nested and
// whose result is a part of what they go through. With loops, the cost limit is a tenth: the time to count the cost
// grows faster.
func CompileLinear(env *cel.Env, source string) (LinearProgram, error) {
	if len(source) > MaxLinearLength {
		return LinearProgram{}, fmt.Errorf("it is longer than %d bytes", MaxLinearLength)
	}
	env, err := env.Extend(cel.ClearMacros(), cel.Macros(cel.HasMacro, cel.AllMacro, cel.ExistsMacro, cel.FilterMacro, cel.MapMacro, cel.MapFilterMacro))
	if err != nil {
		return LinearProgram{}, fmt.Errorf("cannot create the environment of the expression: %w", err)
	}
	parsed, issues := env.Parse(source)
	if err := mistakes(issues); err != nil {
		return LinearProgram{}, err
	}
	// Before types are checked: with other loops, they can grow without bounds.
	loops, err := linearLoops(parsed.NativeRep().Expr())
	if err != nil {
		return LinearProgram{}, err
	}
	limit := uint64(CostLimit)
	if loops > 0 {
		limit = loopCostLimit
	}
	ast, issues := env.Check(parsed)
	if err := mistakes(issues); err != nil {
		return LinearProgram{}, err
	}
	uses, err := linear(ast.NativeRep().Expr())
	if err != nil {
		return LinearProgram{}, err
	}
	program, err := newProgram(env, ast, nil, limit)
	return LinearProgram{Program: program, Uses: uses}, err
}

// linear returns how often an expression uses variables, or why it is not linear.
func linear(e celast.Expr) (uses int, err error) {
	celast.PostOrderVisit(e, celast.NewExprVisitor(func(e celast.Expr) {
		kind := e.Kind()
		if kind == celast.IdentKind && !strings.HasPrefix(e.AsIdent(), "@") {
			uses++ // Also of a variable of a loop, which may have the name of another, but not of the results of loops.
		}
		if kind == celast.CallKind {
			if refused := linearCall(e.AsCall()); refused != nil {
				err = refused
			}
		}
	}))
	return uses, err
}

// linearLoops returns how many loops an expression has, or why one is not linear. Its result is a truth, or a list of
// elements, or of parts of them, so that of loops in a row it is no larger than what the first goes through.
func linearLoops(e celast.Expr) (loops int, err error) {
	celast.PostOrderVisit(e, celast.NewExprVisitor(func(e celast.Expr) {
		if e.Kind() != celast.ComprehensionKind {
			return
		}
		loops++
		loop := e.AsComprehension()
		for _, body := range []celast.Expr{loop.LoopCondition(), loop.LoopStep()} {
			celast.PostOrderVisit(body, celast.NewExprVisitor(func(e celast.Expr) {
				if e.Kind() == celast.ComprehensionKind {
					err = errors.New("loops cannot be nested")
				}
			}))
		}
		if loop.AccuInit().Kind() == celast.ListKind && !takesPart(loop) {
			err = errors.New("map can take only the element, or a field of it")
		}
	}))
	return loops, err
}

// takesPart reports whether each step of filter or map adds a part of the element.
func takesPart(loop celast.ComprehensionExpr) bool {
	step := loop.LoopStep()
	if step.Kind() == celast.CallKind && step.AsCall().FunctionName() == operators.Conditional {
		step = step.AsCall().Args()[1]
	}
	if step.Kind() != celast.CallKind || step.AsCall().FunctionName() != operators.Add {
		return false
	}
	added := step.AsCall().Args()[1]
	return added.Kind() == celast.ListKind && added.AsList().Size() == 1 && isPart(added.AsList().Elements()[0], loop.IterVar())
}

// isPart reports whether an expression is a variable, or a field or an element of it.
func isPart(e celast.Expr, variable string) bool {
	if e.Kind() == celast.IdentKind {
		return e.AsIdent() == variable
	}
	if e.Kind() == celast.SelectKind {
		return !e.AsSelect().IsTestOnly() && isPart(e.AsSelect().Operand(), variable)
	}
	if e.Kind() != celast.CallKind {
		return false
	}
	call := e.AsCall()
	return call.FunctionName() == operators.Index && call.Args()[1].Kind() == celast.LiteralKind && isPart(call.Args()[0], variable)
}

// linearCall returns why a call is not allowed.
func linearCall(call celast.CallExpr) error {
	name := call.FunctionName()
	if !isOneOf(LinearFunctions, name) && !isOneOf(linearOperators, name) {
		return fmt.Errorf("the function %s is not available in references", name)
	}
	switch {
	case name == "format":
		return linearFormat(call)
	case name == "join" && len(call.Args()) > 0:
		if separator, ok := literal(call.Args()[0]); !ok || len(separator) > maxSeparator {
			return fmt.Errorf("the separator of join must be a string literal of at most %d bytes", maxSeparator)
		}
	}
	return nil
}

// linearFormat: a computed format could have any precision, and the result of format is a multiple of its arguments
// (%b), which multiplies when formats are nested.
func linearFormat(call celast.CallExpr) error {
	if !call.IsMemberFunction() {
		return nil
	}
	format, ok := literal(call.Target())
	if !ok || longPrecision.MatchString(format) {
		return errors.New("the text before .format must be a string literal, and a precision in it must have at most two digits")
	}
	var nested error
	for _, argument := range call.Args() {
		celast.PostOrderVisit(argument, celast.NewExprVisitor(func(e celast.Expr) {
			if e.Kind() == celast.CallKind && e.AsCall().FunctionName() == "format" {
				nested = errors.New("calls of format cannot be nested")
			}
		}))
	}
	return nested
}

func literal(e celast.Expr) (string, bool) {
	if e.Kind() != celast.LiteralKind {
		return "", false
	}
	text, ok := e.AsLiteral().(types.String)
	return string(text), ok
}

func isOneOf(list, name string) bool {
	return strings.Contains(" "+list+" ", " "+name+" ")
}
