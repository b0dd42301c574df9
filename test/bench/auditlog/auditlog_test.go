// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package auditlog

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const (
	patch     = `{"kind":"Event","stage":"ResponseComplete","requestURI":"/apis/g/v1/namespaces/n/widgets/a/status?x=y","verb":"patch","user":{"username":"me"},"objectRef":{"resource":"widgets","namespace":"n","name":"a","subresource":"status"}}`
	ready     = `{"kind":"Event","stage":"ResponseComplete","requestURI":"/readyz?verbose","verb":"get","user":{"username":"me"}}`
	begin     = `{"kind":"Event","stage":"ResponseStarted","requestURI":"/apis/g/v1/widgets?watch=true","verb":"watch","user":{"username":"me"},"objectRef":{"resource":"widgets"}}`
	end       = `{"kind":"Event","stage":"ResponseComplete","requestURI":"/apis/g/v1/widgets?watch=true","verb":"watch","user":{"username":"me"},"objectRef":{"resource":"widgets"}}`
	received  = `{"kind":"Event","stage":"RequestReceived","requestURI":"/apis/g/v1/widgets","verb":"list","user":{"username":"me"},"objectRef":{"resource":"widgets"}}`
	elsewhere = `{"kind":"Event","stage":"ResponseComplete","requestURI":"/api/v1/namespaces/me","verb":"get","user":{"username":"other"},"objectRef":{"resource":"namespaces","name":"me"}}`
	panicked  = `{"kind":"Event","stage":"Panic","requestURI":"/api/v1/secrets","verb":"list","user":{"username":"me"},"objectRef":{"resource":"secrets"}}`
)

func TestCount(t *testing.T) {
	cases := map[string]struct {
		reason string
		lines  []string
		want   Counts
	}{
		"Subresource": {
			reason: "A status is another resource than its object.",
			lines:  []string{patch, patch},
			want:   Counts{{User: "me", Verb: "patch", Resource: "widgets/status", Name: "a"}: 2},
		},
		"NoResource": {
			reason: "What is no resource is counted by its path, without the query.",
			lines:  []string{ready},
			want:   Counts{{User: "me", Verb: "get", Resource: "/readyz"}: 1},
		},
		"Watch": {
			reason: "A watch is one request, counted when it begins, for it may not end while anybody looks.",
			lines:  []string{begin, end},
			want:   Counts{{User: "me", Verb: "watch", Resource: "widgets"}: 1},
		},
		"Stages": {
			reason: "A request is counted when it was answered, or could not be, not when it arrives.",
			lines:  []string{received, panicked},
			want:   Counts{{User: "me", Verb: "list", Resource: "secrets"}: 1},
		},
		"OtherUser": {
			reason: "A line that mentions the user in another place is not of that user.",
			lines:  []string{elsewhere},
			want:   Counts{},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := Count([]byte(strings.Join(tc.lines, "\n")+"\n"), "me")
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestCountBroken(t *testing.T) {
	if _, err := Count([]byte(`{"user": "me"`+"\n"), "me"); err == nil {
		t.Error("A line that is not JSON must not be passed over: the count would be too low.")
	}
}

func TestClassify(t *testing.T) {
	cases := map[string]struct {
		reason  string
		request Request
		want    Class
	}{
		"Write":         {"A write is work.", Request{Verb: "patch", Resource: "widgets"}, Work},
		"List":          {"So is a list.", Request{Verb: "list", Resource: "widgets"}, Work},
		"WatchOfLeases": {"A watch is a watch, also one of leases.", Request{Verb: "watch", Resource: "leases"}, Watch},
		"Lease":         {"Renewing a lease is leader election.", Request{Verb: "update", Resource: "leases"}, Lease},
		"Ready":         {"A health endpoint is a probe.", Request{Verb: "get", Resource: "/readyz"}, Probe},
		"Identity":      {"The UID of kube-system is the cluster's identity.", Request{Verb: "get", Resource: "namespaces", Name: "kube-system"}, Probe},
		"Namespace":     {"Any other namespace is work.", Request{Verb: "get", Resource: "namespaces", Name: "default"}, Work},
		"Marker": {
			"The marker says which hub the cluster belongs to.",
			Request{Verb: "get", Resource: "customresourcedefinitions", Name: "hubs.masthead.dev"}, Probe,
		},
		"Definition": {
			"Any other definition is work.", Request{Verb: "get", Resource: "customresourcedefinitions", Name: "x"}, Work,
		},
		"Creation": {"Creating it is no probe.", Request{Verb: "create", Resource: "namespaces", Name: "kube-system"}, Work},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := Classify(tc.request); got != tc.want {
				t.Errorf("%s got %q, want %q", tc.reason, got, tc.want)
			}
		})
	}
}

func TestCounts(t *testing.T) {
	c := Counts{{Verb: "patch", Resource: "widgets", Name: "a"}: 1, {Verb: "get", Resource: "/readyz"}: 2}
	c.Add(Counts{{Verb: "patch", Resource: "widgets", Name: "a"}: 1, {Verb: "patch", Resource: "widgets", Name: "b"}: 1})
	if got := c.Count(Work); got != 3 {
		t.Errorf("Counts of the same class are summed: got %d, want 3", got)
	}
	if got, want := c.String(), "3 patch widgets, 2 get /readyz"; got != want {
		t.Errorf("The most frequent come first, regardless of the name: got %q, want %q", got, want)
	}
}

func TestWrites(t *testing.T) {
	c := Counts{
		{Verb: "patch", Resource: "widgets"}: 1, {Verb: "update", Resource: "widgets/status"}: 2, {Verb: "deletecollection", Resource: "widgets"}: 4,
		{Verb: "create", Resource: "widgets"}: 8, {Verb: "delete", Resource: "widgets"}: 16,
		{Verb: "get", Resource: "widgets"}: 32, {Verb: "list", Resource: "widgets"}: 64, {Verb: "update", Resource: "leases"}: 128,
		{Verb: "create", Resource: "selfsubjectreviews"}: 256,
	}
	if got := c.Writes(Work); got != 31 {
		t.Errorf("A review is no write, and a lease is of another class: got %d, want 31", got)
	}
	if got := c.Writes(Lease); got != 128 {
		t.Errorf("To renew a lease is to write it: got %d, want 128", got)
	}
}

func TestTail(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.log")
	write := func(text string) {
		t.Helper()
		f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = f.Close() }()
		if _, err := f.WriteString(text); err != nil {
			t.Fatal(err)
		}
	}
	write(patch + "\n")
	tail, err := NewTail(path)
	if err != nil {
		t.Fatal(err)
	}
	count := func(reason string, want int) {
		t.Helper()
		c, err := tail.Count("me")
		if err != nil {
			t.Fatal(err)
		}
		if got := c.Count(Work); got != want {
			t.Errorf("%s got %d, want %d", reason, got, want)
		}
	}
	count("What was there before is not counted.", 0)
	write(patch + "\n" + patch[:20])
	count("A line that is not complete is left for later.", 1)
	write(patch[20:] + "\n")
	count("It is counted when it is.", 1)
	count("Nothing is counted twice.", 0)
}
