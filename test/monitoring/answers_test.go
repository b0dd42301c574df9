// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package monitoring

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/common/model"
)

func TestHasNumber(t *testing.T) {
	series := func(values ...model.SampleValue) model.Matrix {
		s := &model.SampleStream{}
		for _, v := range values {
			s.Values = append(s.Values, model.SamplePair{Value: v})
		}
		return model.Matrix{s}
	}
	nan := model.SampleValue(math.NaN())
	cases := map[string]struct {
		reason string
		value  model.Value
		want   bool
	}{
		"Nothing": {reason: "No series, no line.", value: model.Matrix{}},
		"NaN":     {reason: "The quantile of a histogram that nothing was added to is not drawn.", value: series(nan, nan)},
		"Zero":    {reason: "Zero is drawn.", value: series(0), want: true},
		"Once":    {reason: "What was seen once counts.", value: append(series(nan), series(nan, 2, nan)...), want: true},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if got := hasNumber(c.value); got != c.want {
				t.Errorf("%s\nwant %t, got %t", c.reason, c.want, got)
			}
		})
	}
}

func TestProblems(t *testing.T) {
	answer := func(data bool) []Answer {
		return []Answer{{Query: Query{Panel: "page/Panics", Expr: "panics"}, Data: data}}
	}
	never := map[string]Excuse{"page/Panics": {Reason: "nothing panics"}}
	sometimes := map[string]Excuse{"page/Panics": {Reason: "rare", Sometimes: true}}
	cases := map[string]struct {
		reason  string
		answers []Answer
		excuses map[string]Excuse
		want    []string
	}{
		"Data":           {reason: "That is what is wanted.", answers: answer(true)},
		"None":           {reason: "There is no excuse for the panel.", answers: answer(false), want: []string{"page/Panics shows nothing: panics"}},
		"Excused":        {reason: "It was said why.", answers: answer(false), excuses: never},
		"ExcusedAndData": {reason: "The reason is wrong now.", answers: answer(true), excuses: never, want: []string{"page/Panics shows data, and is said not to (nothing panics): panics"}},
		"Sometimes":      {reason: "Both are right.", answers: append(answer(true), answer(false)...), excuses: sometimes},
		"NoSuchPanel":    {reason: "The panel was renamed or removed.", excuses: sometimes, want: []string{"page/Panics is excused, and there is no such panel"}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, Problems(c.answers, c.excuses)); diff != "" {
				t.Errorf("%s\n%s", c.reason, diff)
			}
		})
	}
}
