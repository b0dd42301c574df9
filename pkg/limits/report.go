// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package limits

import "context"

type reportKey struct{}

// WithReport returns a context for requests; report is called with the error if a response is refused. client-go passes
// on only the text of the error that ends a watch. report is called by the reader of the response, and must not block.
func WithReport(ctx context.Context, report func(error)) context.Context {
	return context.WithValue(ctx, reportKey{}, report)
}

// Report calls the context's report function with the error that a response was refused for.
func Report(ctx context.Context, err error) {
	if report, ok := ctx.Value(reportKey{}).(func(error)); ok {
		report(err)
	}
}
