// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/limits"
	"github.com/masthead-dev/masthead/pkg/providers/credentials"
	"github.com/masthead-dev/masthead/pkg/reflection"
)

var reader = fleetv1alpha1.ServiceAccountReference{Namespace: "masthead-import", Name: "reader"} //nolint:gochecknoglobals // A constant.

// newWorkload returns a client of a server that answers with answer.
func newWorkload(t *testing.T, answer http.HandlerFunc) *Client {
	t.Helper()
	server := httptest.NewServer(answer)
	t.Cleanup(server.Close)
	return &Client{client: server.Client(), base: &http.Transport{}, server: server.URL}
}

// endless writes head, and then text until the client stops reading.
func endless(head, text string) http.HandlerFunc {
	chunk := strings.Repeat(text, 64<<10/len(text))
	return func(w http.ResponseWriter, r *http.Request) {
		_, err := io.WriteString(w, head)
		for err == nil && r.Context().Err() == nil {
			_, err = io.WriteString(w, chunk)
		}
	}
}

func always(text string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, text) }
}

// items is a page of n Nodes.
func items(n int, item string) string {
	return `{"items":[` + strings.TrimSuffix(strings.Repeat(item+",", n), ",") + `]}`
}

func TestCreated(t *testing.T) {
	for answer, want := range map[string]string{
		`{"metadata":{"creationTimestamp":"2026-01-02T03:04:05Z"}}`: "2026-01-02T03:04:05Z",
		`{"metadata":{"creationTimestamp":"yesterday"}}`:            "",
		`{"metadata":{"creationTimestamp":null}}`:                   "",
		`{"metadata":{}}`: "",
		`[]`:              "",
	} {
		got := ""
		if at := newWorkload(t, always(answer)).created(t.Context()); !at.IsZero() {
			got = at.UTC().Format(time.RFC3339)
		}
		if got != want {
			t.Errorf("%s: want %q, got %q", answer, want, got)
		}
	}
}

// TestAnswersOfAnImportedClusterAreBounded: an imported cluster belongs to another owner. None of its answers takes
// much of the manager's memory.
func TestAnswersOfAnImportedClusterAreBounded(t *testing.T) {
	for _, c := range []struct {
		reason string
		answer http.HandlerFunc
		// limit is what package limits refuses the answer for. Empty: it is not larger than package limits allows.
		limit limits.Limit
	}{
		{"Items that never end are given up", endless(`{"items":[{}`, `,{}`), limits.LimitCost},
		{"White space that never ends is given up", endless(`{"items":[`, " "), limits.LimitBytes},
		{"A string that never ends is given up", endless(`{"metadata":{"continue":"`, "x"), limits.LimitString},
		{"Labels that never end are given up", endless(`{"items":[{"metadata":{"labels":{"":""`, `,"":""`), limits.LimitCost},
		{"Arrays that never end are given up", endless(`{"items":`, "["), limits.LimitDepth},
		{"Two million empty items have fewer bytes than a page may have", always(items(2_000_000, `{}`)), limits.LimitCost},
		{"A page has no more Nodes than were requested", always(items(nodesPerPage+1, `{}`)), ""},
		{
			"The name of the next page is sent back, so it is short",
			always(`{"metadata":{"continue":"` + strings.Repeat("x", maxContinue+1) + `"},"items":[]}`), "",
		},
		{"What is no JSON is no page", always("<html>"), limits.LimitSyntax},
	} {
		t.Run(c.reason, func(t *testing.T) {
			nodes, err := newWorkload(t, c.answer).nodes(t.Context())
			if err == nil {
				t.Fatalf("nodes(): want an error, got %d Nodes", len(nodes))
			}
			var refused *limits.Error
			if errors.As(err, &refused); c.limit != "" && (refused == nil || refused.Limit != c.limit) {
				t.Errorf("nodes(): want a refusal for %s, got: %v", c.limit, err)
			}
		})
	}
	t.Run("The answer to a review is bounded, too, and the condition repeats nothing of it", func(t *testing.T) {
		got := newWorkload(t, endless(`{"status":{"reason":"`, "secret")).access(t.Context())
		if got.Status != metav1.ConditionUnknown || got.Reason != fleetv1alpha1.ReasonAccessUnknown || strings.Contains(got.Message, "secret") {
			t.Errorf("access(): want %s without what the cluster said, got %+v", fleetv1alpha1.ReasonAccessUnknown, got)
		}
	})
}

// TestPagesThatNeverEnd: a cluster that always has another page is read to a number of Nodes.
func TestPagesThatNeverEnd(t *testing.T) {
	var requests atomic.Int64
	page := strings.Replace(items(nodesPerPage, `{}`), `{`, `{"metadata":{"continue":"more"},`, 1)
	nodes, err := newWorkload(t, func(w http.ResponseWriter, _ *http.Request) {
		requests.Add(1)
		_, _ = io.WriteString(w, page)
	}).nodes(t.Context())
	if err != nil || len(nodes) != nodesPerPage*maxPages || requests.Load() != maxPages {
		t.Errorf("nodes(): want %d Nodes of %d pages, got %d of %d: %v", nodesPerPage*maxPages, maxPages, len(nodes), requests.Load(), err)
	}
}

// TestOnlyWhatIsReadOfANodeIsKept: what is kept of a Node has a bounded size, regardless of what its cluster writes to
// it.
func TestOnlyWhatIsReadOfANodeIsKept(t *testing.T) {
	long := strings.Repeat("x", maxNodeText+1)
	answer := fmt.Sprintf(`{"items":[
		{"metadata":{"labels":{"eks.amazonaws.com/nodegroup":"workers","eks.amazonaws.com/other":"x","kubernetes.io/os":"linux","typewriter":"x"}},
		 "status":{"nodeInfo":{"kubeletVersion":"v1.34.1-eks-1"},"conditions":[{"type":"Ready","status":"True"}]}},
		{"metadata":{"labels":{"karpenter.sh/nodepool":%q,"type":"virtual-kubelet"}},"status":{"nodeInfo":{"kubeletVersion":%q}}}]}`, long, long)
	got, err := newWorkload(t, always(answer)).nodes(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	want := []reflection.Node{
		{Labels: map[string]string{"eks.amazonaws.com/nodegroup": "workers"}, KubeletVersion: "v1.34.1-eks-1", Ready: true},
		{Labels: map[string]string{"type": "virtual-kubelet"}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("nodes(): -want, +got:\n%s", diff)
	}
}

// TestPageOfLargeNodesIsRead: a whole page of Nodes, with all images and managed fields that a kubelet reports, is
// within the bounds.
func TestPageOfLargeNodesIsRead(t *testing.T) {
	node := corev1.Node{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{}, Annotations: map[string]string{}}}
	var fields strings.Builder
	for i := range 40 {
		key := fmt.Sprintf("example.com/a-label-or-annotation-%d", i)
		node.Labels[key], node.Annotations[key] = strings.Repeat("x", 60), strings.Repeat("x", 200)
		fmt.Fprintf(&fields, `,"f:%s":{}`, key)
	}
	managed := metav1.NewFieldsV1(`{"f:metadata":{"f:labels":{".":{}` + fields.String() + `},"f:annotations":{".":{}` + fields.String() + `}}}`)
	for i := range 3 {
		node.ManagedFields = append(node.ManagedFields, metav1.ManagedFieldsEntry{Manager: fmt.Sprint("manager-", i), FieldsV1: managed})
	}
	for range 50 {
		name := "000000000000.dkr.ecr.eu-central-1.amazonaws.com/team/application"
		node.Status.Images = append(node.Status.Images, corev1.ContainerImage{
			Names: []string{name + "@sha256:" + strings.Repeat("0", 64), name + ":v1.2.3"}, SizeBytes: 1 << 30,
		})
	}
	list := corev1.NodeList{}
	for range nodesPerPage {
		list.Items = append(list.Items, node)
	}
	answer, err := json.Marshal(list)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := newWorkload(t, always(string(answer))).nodes(t.Context()); err != nil || len(got) != nodesPerPage {
		t.Errorf("nodes(): want the %d Nodes of a page of %d bytes, got %d: %v", nodesPerPage, len(answer), len(got), err)
	}
}

// TestClusterThatFailsIsNoFaultOfTheSpec: after an error of an imported cluster, the request is retried, and the error
// does not report that a user has to fix the import. An answer that no API server would give does.
func TestClusterThatFailsIsNoFaultOfTheSpec(t *testing.T) {
	const invalid, unavailable = fleetv1alpha1.ReasonServiceAccountTokenInvalid, fleetv1alpha1.ReasonServiceAccountTokenUnavailable
	for name, tc := range map[string]struct {
		reason string
		err    error
		want   string
	}{
		"TooLarge":  {"It sends too much.", &limits.Error{Limit: limits.LimitBytes, Max: maxReview}, unavailable},
		"TooCostly": {"Decoded it would be too much.", &limits.Error{Limit: limits.LimitCost}, unavailable},
		"TooDeep":   {"It sends nonsense, just now.", &limits.Error{Limit: limits.LimitDepth}, unavailable},
		"NoMemory":  {"Others need the memory.", (&noted{ended: limits.ErrShare}).without(limits.ErrShare), unavailable},
		"BreaksOff": {"The connection broke.", (&noted{ended: io.ErrUnexpectedEOF}).without(io.ErrUnexpectedEOF), unavailable},
		"Cut":       {"The text ends in the middle.", (&noted{}).without(io.ErrUnexpectedEOF), unavailable},
		"Empty":     {"There is no text.", (&noted{}).without(io.EOF), unavailable},
		"Server":    {"It is broken.", &StatusError{http.StatusBadGateway}, unavailable},
		"NoJSON":    {"It is a page for people.", &limits.Error{Limit: limits.LimitSyntax}, invalid},
		"OtherJSON": {"It is something else.", (&noted{}).without(errors.New("json: cannot unmarshal")), invalid},
		"NoAPI":     {"It serves no tokens.", &StatusError{http.StatusMethodNotAllowed}, invalid},
	} {
		t.Run(name, func(t *testing.T) {
			refused, ok := errors.AsType[*TokenError](withoutAccountToken(reader, tc.err))
			if !ok || refused.Reason != tc.want || strings.Contains(refused.Message, "unmarshal") {
				t.Errorf("%s\nwant %s, got %v", tc.reason, tc.want, refused)
			}
		})
	}
}

// TestClusterThatNeverAnswersIsGivenUp: a request for a token holds its worker for no longer than any other request,
// and ends with its caller.
func TestClusterThatNeverAnswersIsGivenUp(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	release := make(chan struct{})
	w := newWorkload(t, func(http.ResponseWriter, *http.Request) {
		cancel()
		<-release
	})
	t.Cleanup(func() { close(release) })
	if _, err := w.Token(ctx, reader); err == nil {
		t.Error("want no token")
	}
	bounded, err := NewClient([]byte(newKubeconfig("https://cluster.example.org", nil)), credentials.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if bounded.client.Timeout == 0 || bounded.base.ResponseHeaderTimeout == 0 {
		t.Error("want a request to have a timeout")
	}
}

func newKubeconfig(server string, authority []byte) string {
	return fmt.Sprintf(`{"apiVersion":"v1","kind":"Config","current-context":"c","contexts":[{"name":"c","context":{"cluster":"c","user":"u"}}],
		"clusters":[{"name":"c","cluster":{"server":%q,"certificate-authority-data":%q}}],"users":[{"name":"u","user":{"token":"t"}}]}`,
		server, base64.StdEncoding.EncodeToString(authority))
}
