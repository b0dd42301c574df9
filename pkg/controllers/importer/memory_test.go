// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package importer

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
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/masthead-dev/masthead/pkg/budget"
	"github.com/masthead-dev/masthead/pkg/providers/credentials"
)

// askedWithBudget looks at the cluster of an import, whose Nodes fill some pages, with a budget.
func askedWithBudget(t *testing.T, r *Reconciler, namespace string, kubeconfig []byte) *pass {
	t.Helper()
	imp := anImport()
	imp.Namespace, imp.UID = namespace, types.UID(namespace)
	p := newPass(imp)
	p.kubeconfigNow = kubeconfig
	if err := r.access(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	return p
}

// aClusterOfNodes answers like a cluster with ten thousand Nodes.
func aClusterOfNodes(t *testing.T) (kubeconfig []byte) {
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
	kubeconfig, err := encoded(&clientcmdapi.Cluster{
		Server: server.URL, CertificateAuthorityData: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}),
	}, &clientcmdapi.AuthInfo{Token: "t"})
	if err != nil {
		t.Fatal(err)
	}
	return kubeconfig
}

// TestNodesCountInTheMemoryBudget: an imported cluster has as many Nodes as it says. What is kept of them counts in the
// budget that all clusters share, is given back with the import, and yields to others.
func TestNodesCountInTheMemoryBudget(t *testing.T) {
	kubeconfig := aClusterOfNodes(t)
	shared := budget.New(7 << 20) // The Nodes take more than half.
	clock := clocktesting.NewFakeClock(time.Now())
	r := &Reconciler{
		clusters: newClusters(clock, shared), creds: credentials.Options{AllowLoopback: true},
		places: newPlaces(DefaultMaxConcurrentReconciles, func(types.NamespacedName) {}),
	}
	first := askedWithBudget(t, r, "customers", kubeconfig)
	nodes, known := r.clusters.nodes(first.key(), first.imp.UID)
	used, by := shared.Used()
	if !known || len(nodes) != nodesPerPage*maxPages || used < sizeOf(nodes)-1<<15 || len(by) != 1 || by[0].Class != budgetClass || by[0].Cluster != "ClusterImports/customers" {
		t.Fatalf("want the Nodes charged to their namespace, got %d Nodes of %d bytes, and %v", len(nodes), sizeOf(nodes), by)
	}

	// Somebody within its share needs the room.
	other := shared.Account("gold", "honest", nil).Holder(nil)
	if err := other.Hold(7 << 19); err != nil {
		t.Fatal(err)
	}
	eventuallyTrue(t, "the Nodes yield", func() bool {
		_, known := r.clusters.nodes(first.key(), first.imp.UID)
		return !known
	})
	if err := other.Hold(6 << 20); err != nil {
		t.Fatal(err)
	}
	clock.Step(resync)
	again := askedWithBudget(t, r, "customers", kubeconfig)
	if _, known := r.clusters.nodes(first.key(), first.imp.UID); known || !strings.Contains(again.conditions[0].Message, "its Nodes are not kept") || again.again != resync {
		t.Errorf("want no Nodes, somebody told, and the cluster left alone for %s, got %v after %s", resync, again.conditions, again.again)
	}

	other.Close()
	clock.Step(resync)
	askedWithBudget(t, r, "customers", kubeconfig)
	if _, known := r.clusters.nodes(first.key(), first.imp.UID); !known {
		t.Error("want the Nodes again when there is room")
	}
	r.clusters.forget(first.key())
	if used, by := shared.Used(); used != 0 || len(by) != 1 || len(r.clusters.memory.open) != 0 {
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
