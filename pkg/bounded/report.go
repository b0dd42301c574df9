// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package bounded

import "context"

type reportKey struct{}

// WithReport returns a context for requests of which report is told if an answer is refused, and why. client-go passes
// on of what ends a watch only the text. report is called by whoever reads the answer, and must not block.
func WithReport(ctx context.Context, report func(error)) context.Context {
	return context.WithValue(ctx, reportKey{}, report)
}

// Report tells whoever made the request with this context that its answer is refused.
func Report(ctx context.Context, err error) {
	if report, ok := ctx.Value(reportKey{}).(func(error)); ok {
		report(err)
	}
}
