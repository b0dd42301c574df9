// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"testing"

	. "github.com/onsi/ginkgo/v2"
	"github.com/onsi/ginkgo/v2/types"
)

// remarks are what is reported about a run at its end.
var remarks []string

// failures are the specs that failed, each with the state of the fleet and then its reason and the place, in the order
// in which they ran.
var failures []string

var _ = ReportAfterSuite("what failed", func(report Report) {
	for _, spec := range report.SpecReports {
		if !spec.Failed() {
			continue
		}
		for _, entry := range spec.ReportEntries {
			failures = append(failures, entry.Name+":\n"+entry.StringRepresentation())
		}
		failures = append(failures, failureText(spec, spec.Failure))
		for _, later := range spec.AdditionalFailures {
			failures = append(failures, failureText(spec, later.Failure))
		}
	}
})

func failureText(spec SpecReport, f types.Failure) string {
	// A node that is not a spec, such as AfterSuite, has no text.
	return fmt.Sprintf("%s, at %s:%d\n%s", cmp.Or(spec.FullText(), spec.LeafNodeType.String()), filepath.Base(f.Location.FileName), f.Location.LineNumber, cut(f.Message))
}

// cut cuts a text that is too long to be read.
func cut(text string) string {
	const longest = 1500 // bytes
	if len(text) <= longest {
		return text
	}
	return text[:longest] + " [...]"
}

// No spec is left out of a run silently: otherwise it would not be noticed that a spec ran on neither of the fleets.
var _ = ReportAfterSuite("what ran", func(report Report) {
	config := report.SuiteConfig
	ran, left, silent := account(place(), config.LabelFilter, report.SpecReports)
	remarks = append(remarks, fmt.Sprintf("%d specs ran on %s, %d need another fleet:", len(ran), place(), len(left)))
	remarks = append(remarks, append(ran, left...)...)
	chosen := len(config.FocusStrings)+len(config.SkipStrings)+len(config.FocusFiles)+len(config.SkipFiles) > 0 ||
		config.LabelFilter != "" && config.LabelFilter != inFirstFleet && config.LabelFilter != inSecondFleet
	switch {
	case chosen:
		remarks = append(remarks, fmt.Sprintf("%d others were not chosen", len(silent)))
	case len(silent) > 0 && report.SuiteSucceeded:
		Fail(fmt.Sprintf("specs did not run, and do not say why by needs(): %q", silent))
	}
})

// account returns which specs ran, and for how long; which did not run because they need another fleet; and which did
// not run and give no reason. What runs in the other one of two fleets is none of these.
func account(place, labelFilter string, specs types.SpecReports) (ran, left, silent []string) {
	for _, spec := range specs.WithLeafNodeType(types.NodeTypeIt) {
		why := unmet(place, spec.Labels())
		switch {
		case !spec.State.Is(types.SpecStateSkipped | types.SpecStatePending):
			ran = append(ran, fmt.Sprintf("%-7s %5.1f s  %s", spec.State, spec.RunTime.Seconds(), spec.FullText()))
		case runsInOther(labelFilter, spec.Labels()):
		case why != "":
			left = append(left, fmt.Sprintf("%-7s          %s: %s", spec.State, spec.FullText(), why))
		default:
			silent = append(silent, spec.FullText())
		}
	}
	return ran, left, silent
}

func TestAccount(t *testing.T) {
	spec := func(state types.SpecState, labels ...string) types.SpecReport {
		return types.SpecReport{LeafNodeType: types.NodeTypeIt, LeafNodeText: "spec", State: state, LeafNodeLabels: labels}
	}
	here, elsewhere := needs(localProcesses, "processes"), needs(kindClusters, "nodes")
	type counts struct{ Ran, Left, Silent int }
	cases := map[string]struct {
		reason string
		filter string
		spec   types.SpecReport
		want   counts
	}{
		"Ran":           {"what needs nothing runs everywhere", "", spec(types.SpecStatePassed), counts{Ran: 1}},
		"Failed":        {"what failed did run", "", spec(types.SpecStateFailed), counts{Ran: 1}},
		"Here":          {"what needs this fleet runs", "", spec(types.SpecStatePassed, here...), counts{Ran: 1}},
		"Elsewhere":     {"what needs another fleet says so", "", spec(types.SpecStateSkipped, elsewhere...), counts{Left: 1}},
		"Skipped":       {"nothing is skipped without a need", "", spec(types.SpecStateSkipped), counts{Silent: 1}},
		"SkippedHere":   {"what needs this fleet is not skipped", "", spec(types.SpecStateSkipped, here...), counts{Silent: 1}},
		"Pending":       {"pending is skipped by another name", "", spec(types.SpecStatePending), counts{Silent: 1}},
		"NoSpecAtAll":   {"what sets the suite up is no spec", "", types.SpecReport{LeafNodeType: types.NodeTypeBeforeSuite}, counts{}},
		"AmongOtherIts": {"other labels are no needs", "", spec(types.SpecStateSkipped, "slow"), counts{Silent: 1}},
		"Second":        {"the second fleet runs it", inFirstFleet, spec(types.SpecStateSkipped, secondFleet...), counts{}},
		"First":         {"the first fleet runs it", inSecondFleet, spec(types.SpecStateSkipped), counts{}},
		"SecondHere":    {"the second fleet skips none of its own", inSecondFleet, spec(types.SpecStateSkipped, secondFleet...), counts{Silent: 1}},
		"FirstHere":     {"nor does the first fleet", inFirstFleet, spec(types.SpecStateSkipped), counts{Silent: 1}},
		"OneFleet":      {"there is no other fleet", "", spec(types.SpecStateSkipped, secondFleet...), counts{Silent: 1}},
		"OtherFilter":   {"no other filter divides the specs", "slow", spec(types.SpecStateSkipped, secondFleet...), counts{Silent: 1}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			ran, left, silent := account(localProcesses, tc.filter, types.SpecReports{tc.spec})
			if got := (counts{len(ran), len(left), len(silent)}); got != tc.want {
				t.Errorf("%s: account() = %+v of %v, want %+v", tc.reason, got, slices.Concat(ran, left, silent), tc.want)
			}
		})
	}
}
