// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"fmt"
	"runtime/debug"

	"k8s.io/klog/v2"
)

// A Panic is a recovered panic, as an error.
type Panic struct { //nolint:errname // It is what was recovered, and an error to some users only.
	// Task is what was being done, in Masthead's words.
	Task string

	// Value is the panic value: truncated and quoted, since it can contain text from a workload cluster.
	Value string

	// Stack is the stack of the goroutine at the panic.
	Stack []byte
}

// Error implements error.
func (p *Panic) Error() string { return fmt.Sprintf("panic in %s: %s", p.Task, p.Value) }

// A Guard recovers panics, and reports each of them. A nil Guard recovers, too, but only logs: use it where there is no
// connection.
type Guard struct {
	report func(*Panic)
}

// New returns a Guard that reports to report, which is called in the goroutine that panicked, and must not block.
func New(report func(*Panic)) *Guard { return &Guard{report: report} }

// Run calls fn, and returns its error or, if it panics, a *Panic.
func (g *Guard) Run(task string, fn func() error) (err error) {
	defer func() {
		if value := recover(); value != nil {
			err = g.recovered(task, value)
		}
	}()
	return fn()
}

// Do is Run for functions without an error.
func (g *Guard) Do(task string, fn func()) error {
	return g.Run(task, func() error {
		fn()
		return nil
	})
}

// Go is Do in a goroutine.
func (g *Guard) Go(task string, fn func()) {
	go func() { _ = g.Do(task, fn) }()
}

func (g *Guard) recovered(task string, value any) *Panic {
	p := &Panic{Task: task, Value: describe(value), Stack: debug.Stack()}
	if g == nil {
		klog.Background().Error(p, "Recovered from a panic", "stack", string(p.Stack))
		return p
	}
	g.report(p)
	return p
}

// describe returns the text of a panic value. For types without a text form, it returns only the type: the value could
// contain a whole object.
func describe(value any) string {
	switch value.(type) {
	case error, string, fmt.Stringer:
		return fmt.Sprintf("%.256q", fmt.Sprint(value))
	default:
		return fmt.Sprintf("%T", value)
	}
}
