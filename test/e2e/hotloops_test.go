// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"cmp"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/masthead-dev/masthead/test/bench/auditlog"
	"github.com/masthead-dev/masthead/test/localfleet"
)

const (
	// mastheadUser is the manager in the audit log of the hub.
	mastheadUser = "system:serviceaccount:masthead-system:masthead"
	// mostWrites is how often the manager may send the same write in a run: with one verb, to one object, or to those of
	// one kind and name. mostStatuses is the same for the status, which changes more often. The specs enrol some clusters
	// dozens of times: runs had up to 90 and 241. A controller that applies an object which Kubernetes garbage collects
	// at once applies it hundreds of times within minutes.
	mostWrites   = 300
	mostStatuses = 600
)

// expectNoHotLoop checks in the audit log of the hub, after all specs, that no controller has repeated itself.
func expectNoHotLoop() {
	GinkgoHelper()
	requests, err := readRequests(localfleet.HubName, mastheadUser)
	Expect(err).NotTo(HaveOccurred())
	writes := mostFrequentWrites(requests)
	remarks = append(remarks, "Masthead's most frequent writes to the hub: "+strings.Join(texts(writes[:min(10, len(writes))]), ", "))
	Expect(texts(slices.DeleteFunc(writes, repeated.isExpected))).To(BeEmpty(), "Masthead repeats writes")
}

// readRequests counts the requests of a user in the audit log of a cluster. It is an error if there are none.
func readRequests(cluster, user string) (auditlog.Counts, error) {
	content, err := os.ReadFile(local.AuditLog(cluster))
	if err != nil {
		return nil, err
	}
	// The API server may be writing its last line.
	requests, err := auditlog.Count(content[:bytes.LastIndexByte(content, '\n')+1], user)
	if err == nil && len(requests) == 0 {
		err = fmt.Errorf("%s has sent no request to the cluster %s", user, cluster)
	}
	return requests, err
}

// repeated is a write, and how often it was sent.
type repeated struct {
	auditlog.Request
	times int
}

func (r repeated) isExpected() bool {
	if strings.HasSuffix(r.Resource, "/status") {
		return r.times <= mostStatuses
	}
	return r.times <= mostWrites
}

// mostFrequentWrites returns the writes of objects other than leases, the most frequent first. Reviews of rights and
// tokens are no objects, and have no name.
func mostFrequentWrites(requests auditlog.Counts) []repeated {
	var writes []repeated
	for r, times := range requests {
		if r.Writes() && r.Name != "" && auditlog.Classify(r) == auditlog.Work {
			writes = append(writes, repeated{Request: r, times: times})
		}
	}
	slices.SortFunc(writes, func(a, b repeated) int {
		return cmp.Or(b.times-a.times, strings.Compare(a.Resource, b.Resource), strings.Compare(a.Name, b.Name), strings.Compare(a.Verb, b.Verb))
	})
	return writes
}

func texts(writes []repeated) []string {
	out := make([]string, 0, len(writes))
	for _, w := range writes {
		out = append(out, fmt.Sprintf("%d %s %s %s", w.times, w.Verb, w.Resource, w.Name))
	}
	return out
}

func TestRepeatedWrites(t *testing.T) {
	cases := map[string]struct {
		reason   string
		request  auditlog.Request
		times    int
		counted  bool
		expected bool
	}{
		"HotLoop":      {"It is applied again each time that it is deleted.", auditlog.Request{Verb: "patch", Resource: "clusterprofiles", Name: "w1"}, 3373, true, false},
		"Object":       {"Specs enrol some clusters often.", auditlog.Request{Verb: "patch", Resource: "clusterprofiles", Name: "w1"}, 90, true, true},
		"Status":       {"A status changes more often.", auditlog.Request{Verb: "patch", Resource: "clusterprofiles/status", Name: "w1"}, 400, true, true},
		"StatusLoop":   {"But not at any rate.", auditlog.Request{Verb: "patch", Resource: "clusterprofiles/status", Name: "w1"}, 3373, true, false},
		"Read":         {"It changes nothing.", auditlog.Request{Verb: "get", Resource: "secrets", Name: "w1"}, 3373, false, false},
		"Lease":        {"It is renewed every few seconds.", auditlog.Request{Verb: "update", Resource: "leases", Name: "masthead"}, 3373, false, false},
		"RightsReview": {"It is no object, and changes nothing.", auditlog.Request{Verb: "create", Resource: "selfsubjectaccessreviews"}, 3373, false, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			writes := mostFrequentWrites(auditlog.Counts{tc.request: tc.times, {Verb: "patch", Resource: "events", Name: "other"}: 1})
			first := writes[0]
			if counted := first.Request == tc.request; counted != tc.counted || counted && first.isExpected() != tc.expected {
				t.Errorf("%s: want it counted: %t, and expected: %t, got %v", tc.reason, tc.counted, tc.expected, texts(writes))
			}
		})
	}
}
