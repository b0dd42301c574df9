// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"context"
	"encoding/pem"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/masthead-dev/masthead/pkg/limits"
	"github.com/masthead-dev/masthead/pkg/providers/credentials"
)

// answerOf sends requests to the cluster of an import, whose Nodes fill some pages, and caches the answer.
func answerOf(t *testing.T, c *Clusters, key types.NamespacedName, kubeconfig string) Answer {
	t.Helper()
	answer, err := c.Ask(t.Context(), key.Namespace, []byte(kubeconfig), credentials.Options{AllowLoopback: true})
	if err != nil {
		t.Fatal(err)
	}
	answer.UID = fakeUID(key)
	return c.Remember(key, answer)
}

func fakeUID(key types.NamespacedName) types.UID { return types.UID(key.String()) }

// aClusterOfNodes answers like a cluster with ten thousand Nodes.
func aClusterOfNodes(t *testing.T) (kubeconfig string) {
	t.Helper()
	page := strings.Replace(items(nodesPerPage, `{"metadata":{"labels":{"eks.amazonaws.com/nodegroup":"blue"}}}`), `{`, `{"metadata":{"continue":"more"},`, 1)
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			_, _ = io.WriteString(w, `{"status":{"allowed":true}}`)
			return
		}
		_, _ = io.WriteString(w, page)
	}))
	t.Cleanup(server.Close)
	return newKubeconfig(server.URL, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}))
}

// TestNodesCountInTheMemoryBudget: an imported cluster can report any number of Nodes. What is kept of them counts in
// the budget that all clusters share, is released with the import, and yields to others.
func TestNodesCountInTheMemoryBudget(t *testing.T) {
	kubeconfig := aClusterOfNodes(t)
	shared := limits.NewBudget(7 << 20) // The Nodes take more than half.
	clock := clocktesting.NewFakeClock(time.Now())
	c, key := NewClusters(clock, shared), types.NamespacedName{Namespace: "customers", Name: "c"}
	answerOf(t, c, key, kubeconfig)
	nodes, known := c.Nodes(key, fakeUID(key))
	used, by := shared.Used()
	if !known || len(nodes) != nodesPerPage*maxPages || used < nodesSize(nodes)-1<<15 || len(by) != 1 || by[0].Class != budgetClass || by[0].Cluster != "ClusterImports/customers" {
		t.Fatalf("want the Nodes charged to their namespace, got %d Nodes of %d bytes, and %v", len(nodes), nodesSize(nodes), by)
	}

	// Another cluster, which is within its share, needs the room.
	other := shared.Account("gold", "honest", nil).Holder(nil)
	if err := other.Hold(7 << 19); err != nil {
		t.Fatal(err)
	}
	eventuallyTrue(t, "the Nodes yield", func() bool {
		_, known := c.Nodes(key, fakeUID(key))
		return !known
	})
	if err := other.Hold(6 << 20); err != nil {
		t.Fatal(err)
	}
	clock.Step(Resync)
	again := answerOf(t, c, key, kubeconfig)
	if _, known := c.Nodes(key, fakeUID(key)); known || !strings.Contains(again.Condition().Message, "its Nodes are not kept") || again.GoodFor() != Resync {
		t.Errorf("want no Nodes, a condition that says so, and the cluster left alone for %s, got %v after %s", Resync, again.Condition(), again.GoodFor())
	}

	other.Close()
	clock.Step(Resync)
	answerOf(t, c, key, kubeconfig)
	if _, known := c.Nodes(key, fakeUID(key)); !known {
		t.Error("want the Nodes again when there is room")
	}
	c.Forget(key)
	if used, by := shared.Used(); used != 0 || len(by) != 1 || len(c.memory.open) != 0 {
		t.Errorf("want everything given back with the import, got %d bytes, %v", used, by)
	}
}

// eventuallyTrue waits for something that another goroutine does.
func eventuallyTrue(t *testing.T, what string, is func() bool) {
	t.Helper()
	err := wait.PollUntilContextTimeout(t.Context(), time.Millisecond, 4*time.Minute, true, func(context.Context) (bool, error) { return is(), nil })
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
}
