// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	inventoryv1alpha1 "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/masthead-dev/masthead/internal/cli/connect"
	"github.com/masthead-dev/masthead/pkg/controllers/inventory"
	"github.com/masthead-dev/masthead/pkg/providers/credentials"
)

// TestSilenceIsNotLogged has a cluster that does not answer: the command reports that, and not the client library.
func TestSilenceIsNotLogged(t *testing.T) {
	ended := make(chan struct{})
	server := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-ended }))
	t.Cleanup(server.Close)
	t.Cleanup(func() { close(ended) })
	allow := credentials.Options{AllowLoopback: true}
	authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	kubeconfig, err := connect.Kubeconfig(connect.Target{Server: server.URL, Authority: authority}, "token", allow)
	if err != nil {
		t.Fatal(err)
	}
	cfg, err := newConfig(kubeconfig, allow)
	if err != nil {
		t.Fatal(err)
	}
	cfg.Timeout = 200 * time.Millisecond
	c, err := rest.HTTPClientFor(cfg)
	if err != nil {
		t.Fatal(err)
	}
	logged := make(chan string, 16)
	ctx := klog.NewContext(t.Context(), funcr.New(func(_, line string) { logged <- line }, funcr.Options{}))
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, server.URL, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := c.Do(req)
	if err == nil {
		_ = resp.Body.Close()
		t.Fatal("want no answer within the time")
	}
	select {
	case line := <-logged:
		t.Errorf("nothing is written to the standard error beside what the command says, got %s", line)
	default:
	}
}

func TestAClusterOfAProfileIsReachedByName(t *testing.T) {
	published := profile("b", "clusterprofile-w3", "masthead", "clusterprofile/b/w3")
	published.Status.Properties = []inventoryv1alpha1.Property{{Name: inventory.PropertyClusterIdentifier, Value: "w3"}}
	clusters := Clusters(nil, []inventoryv1alpha1.ClusterProfile{published}, nil)
	named, err := Find(clusters, "clusterprofile/b/w3")
	if err != nil {
		t.Fatal(err)
	}
	short, err := Find(clusters, "w3")
	if err != nil {
		t.Fatal(err)
	}
	h := &Hub{
		ClusterClient: &ClusterClient{client: fake.NewClientBuilder().WithScheme(Scheme()).Build()}, workloads: map[string]*reached{},
	}
	const refused, read = "with --cluster clusterprofile/b/w3 only", "cannot read the enrolled ClusterProfile"
	for _, tc := range []struct {
		reason  string
		cluster *Cluster
		want    string
	}{
		{reason: "The user named it.", cluster: named, want: read},
		{reason: "Its short name can be meant for another.", cluster: short, want: refused},
		{reason: "It is one of all.", cluster: &clusters[0], want: refused},
		{reason: "An object of the hub names it.", cluster: ByIdentifier(clusters, "w3"), want: refused},
	} {
		if _, err := h.Workload(t.Context(), tc.cluster); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s want %q, got %v", tc.reason, tc.want, err)
		}
	}
}

// TestForgedIdentifier: a ClusterProfile does not stand for the cluster whose identifier it presents.
func TestForgedIdentifier(t *testing.T) {
	forged := profile("b", "clusterprofile-w3", "masthead", "clusterprofile/b/w3")
	other := profile("b", "kubeconfig-w3", "masthead", "kubeconfig/b/w3")
	for _, p := range []*inventoryv1alpha1.ClusterProfile{&forged, &other} {
		p.Status.Properties = []inventoryv1alpha1.Property{{Name: inventory.PropertyClusterIdentifier, Value: "w3"}}
	}
	all := Clusters(nil, []inventoryv1alpha1.ClusterProfile{forged, other}, nil)
	if got := ByIdentifier(all, "w3"); got == nil || got.Name != "kubeconfig/b/w3" {
		t.Errorf("want the other cluster, got %+v", got)
	}
}
