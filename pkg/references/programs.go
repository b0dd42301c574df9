// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package references

import (
	"fmt"
	"sync"

	"github.com/google/cel-go/cel"
	"k8s.io/utils/lru"

	"github.com/masthead-dev/masthead/pkg/expression"
)

// variablesName is the name of the variables in expressions, and selfName that of the value in when.
const (
	variablesName = "variables"
	selfName      = "self"
)

// maxPrograms is the number of cached compiled expressions. Objects made from a template share them.
const maxPrograms = 256

// programs compiles expressions, and caches the latest.
type programs struct {
	env   func() (*cel.Env, error)
	cache *lru.Cache
}

// newPrograms returns the programs about one variable.
func newPrograms(name string, of *cel.Type) *programs {
	return &programs{
		env:   sync.OnceValues(func() (*cel.Env, error) { return expression.NewEnvironment(cel.Variable(name, of)) }),
		cache: lru.New(maxPrograms),
	}
}

// program is a compiled expression, or why it cannot be compiled.
type program struct {
	expression.LinearProgram

	err error
}

func (p *programs) get(source string) program {
	if len(source) > expression.MaxLinearLength {
		// It is not kept either.
		return program{err: fmt.Errorf("it is longer than %d bytes", expression.MaxLinearLength)}
	}
	if known, ok := p.cache.Get(source); ok {
		return known.(program) //nolint:forcetypeassert // Nothing else is put there.
	}
	var out program
	env, err := p.env()
	if err != nil {
		out.err = err
	} else {
		out.LinearProgram, out.err = expression.CompileLinear(env, source)
	}
	p.cache.Add(source, out)
	return out
}
