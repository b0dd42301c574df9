// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package health

import (
	"testing"
	"time"

	"github.com/masthead-dev/masthead/internal/healthcases"
)

// BenchmarkFixtures measures the time of Assess for the fixtures of the library, all of them in each round. Beside the
// mean for one fixture it reports the slowest one, and names it. The best of several rounds counts, because other load
// on the machine is not the library's.
func BenchmarkFixtures(b *testing.B) {
	library, err := NewLibrary()
	if err != nil {
		b.Fatal(err)
	}
	cases, err := healthcases.OfFixtures("library/testdata")
	if err != nil {
		b.Fatal(err)
	}
	a := library.New()
	best := make([]time.Duration, len(cases))
	for i, c := range cases {
		a.Assess(c.Object, true)
		best[i] = time.Hour
	}
	for b.Loop() {
		for i, c := range cases {
			start := time.Now()
			a.Assess(c.Object, true)
			best[i] = min(best[i], time.Since(start))
		}
	}
	sum, worst := time.Duration(0), 0
	for i, took := range best {
		sum += took
		if took > best[worst] {
			worst = i
		}
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(float64(sum.Nanoseconds())/float64(len(cases)), "ns/object")
	b.ReportMetric(float64(best[worst].Nanoseconds()), "ns/worst")
	b.Logf("the worst is %s", cases[worst].Name)
}
