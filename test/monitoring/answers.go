// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package monitoring

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"

	v1 "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/common/model"
)

// An Answer is the result of a query.
type Answer struct {
	Query

	// Data is whether there was a number at some point.
	Data bool
}

// Ask evaluates queries over a range. A query that fails is an error.
func (p *Prometheus) Ask(ctx context.Context, queries []Query, over v1.Range) ([]Answer, error) {
	var answers []Answer
	var failed []error
	for _, q := range queries {
		value, warnings, _, err := p.QueryRange(ctx, q.Expr, over)
		if err != nil {
			failed = append(failed, fmt.Errorf("cannot evaluate %q of %s: %w", q.Expr, q.Panel, err))
			continue
		}
		if len(warnings) > 0 {
			failed = append(failed, fmt.Errorf("evaluating %q of %s gives warnings: %q", q.Expr, q.Panel, warnings))
		}
		answers = append(answers, Answer{Query: q, Data: hasNumber(value)})
	}
	return answers, errors.Join(failed...)
}

// hasNumber is whether Grafana would draw anything: it draws nothing for a quantile of no samples, which is NaN.
func hasNumber(value model.Value) bool {
	matrix, _ := value.(model.Matrix)
	return slices.ContainsFunc(matrix, func(series *model.SampleStream) bool {
		return slices.ContainsFunc(series.Values, func(s model.SamplePair) bool { return !math.IsNaN(float64(s.Value)) })
	})
}

// An Excuse is the reason why a panel may show nothing.
type Excuse struct {
	Reason string
	// Sometimes is whether that depends on the machine. Otherwise the panel must show nothing.
	Sometimes bool
}

// Problems are the queries without data that have no excuse, and the excuses, by panel, that excuse nothing.
func Problems(answers []Answer, excuses map[string]Excuse) []string {
	var problems []string
	used := map[string]bool{}
	for _, a := range answers {
		excuse, excused := excuses[a.Panel]
		used[a.Panel] = true
		switch {
		case !a.Data && !excused:
			problems = append(problems, fmt.Sprintf("%s shows nothing: %s", a.Panel, a.Expr))
		case a.Data && excused && !excuse.Sometimes:
			problems = append(problems, fmt.Sprintf("%s shows data, and is said not to (%s): %s", a.Panel, excuse.Reason, a.Expr))
		}
	}
	for _, panel := range slices.Sorted(maps.Keys(excuses)) {
		if !used[panel] {
			problems = append(problems, panel+" is excused, and there is no such panel")
		}
	}
	return problems
}
