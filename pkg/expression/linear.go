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
	"github.com/google/cel-go/common/types"
)

// MaxLinearLength is the maximum length in bytes of an expression for CompileLinear.
const MaxLinearLength = 4096

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

// linearOperators are the operators of the language, as named in an AST.
const linearOperators = "!_ -_ @in _!=_ _%_ _&&_ _*_ _+_ _-_ _/_ _<=_ _<_ _==_ _>=_ _>_ _?._ _?_:_ _[?_] _[_] _||_"

// longPrecision finds a precision of more than two digits in a format: %.1000000f yields a million digits.
var longPrecision = regexp.MustCompile(`%\.[0-9]{3,}`) //nolint:gochecknoglobals // A constant.

// A LinearProgram is an expression all of whose values have a size that is linear in its text and its input.
type LinearProgram struct {
	cel.Program

	// Uses is how often the expression uses a variable of the environment. This times the size of its input is about the
	// maximum size of a value. The caller must bound it.
	Uses int
}

// CompileLinear compiles an expression of a user who is not trusted with the manager's memory and time. The only macro
// is has, so there are no loops and nothing is evaluated twice. Besides operators, only LinearFunctions are allowed.
func CompileLinear(env *cel.Env, source string) (LinearProgram, error) {
	if len(source) > MaxLinearLength {
		return LinearProgram{}, fmt.Errorf("it is longer than %d bytes", MaxLinearLength)
	}
	env, err := env.Extend(cel.ClearMacros(), cel.Macros(cel.HasMacro))
	if err != nil {
		return LinearProgram{}, fmt.Errorf("cannot create the environment of the expression: %w", err)
	}
	ast, err := parse(env, source)
	if err != nil {
		return LinearProgram{}, err
	}
	uses, err := linear(ast.NativeRep().Expr())
	if err != nil {
		return LinearProgram{}, err
	}
	program, err := newProgram(env, ast, nil)
	return LinearProgram{Program: program, Uses: uses}, err
}

// linear returns how often an expression uses variables, or why it is not linear.
func linear(e celast.Expr) (uses int, err error) {
	celast.PostOrderVisit(e, celast.NewExprVisitor(func(e celast.Expr) {
		kind := e.Kind()
		if kind == celast.IdentKind {
			uses++
		}
		if kind == celast.ComprehensionKind {
			err = errors.New("it has a loop")
		}
		if kind == celast.CallKind {
			if refused := linearCall(e.AsCall()); refused != nil {
				err = refused
			}
		}
	}))
	return uses, err
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
