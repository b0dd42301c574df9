// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	inventoryv1alpha1 "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"
	"sigs.k8s.io/cluster-inventory-api/pkg/access"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/providers/connection"
	"github.com/masthead-dev/masthead/pkg/providers/credentials"
)

func accessible(c *connection.Cluster) {
	c.Access = &connection.Access{
		Endpoint: credentials.Endpoint{Server: "https://w1.example.org:6443", Authorities: []byte("the authorities")},
		Secret:   connection.SecretKey{Namespace: "fleet", Name: "w1-kubeconfig", Key: "value"},
	}
}

// TestOtherProgramsCanReachACluster reads a profile as other programs do: with the cluster inventory API's own library.
func TestOtherProgramsCanReachACluster(t *testing.T) {
	fleet := newFakeFleet()
	h := startHub(t, fleet, nil)
	provider := func() *inventoryv1alpha1.AccessProvider {
		p := h.profile(t, "capi-w1")
		if p == nil || len(ourAccess(p.Status.AccessProviders)) == 0 {
			return nil
		}
		return &ourAccess(p.Status.AccessProviders)[0]
	}
	fleet.set(h.cluster("w1", accessible))
	eventually(t, "how the cluster is reached", func() bool { return provider() != nil })

	plugin := &clientcmdapi.ExecConfig{Command: "plugin", APIVersion: "client.authentication.k8s.io/v1", ProvideClusterInfo: true}
	cfg, err := access.New([]access.Provider{{Name: "kubeconfig-secretreader", ExecConfig: plugin}}).BuildConfigFromCP(h.profile(t, "capi-w1"))
	if err != nil {
		t.Fatal(err)
	}
	if cfg.Host != "https://w1.example.org:6443" || string(cfg.CAData) != "the authorities" || cfg.Insecure {
		t.Errorf("want the endpoint, got %q, %q, %t", cfg.Host, cfg.CAData, cfg.Insecure)
	}
	passed, err := rest.ConfigToExecCluster(cfg)
	if err != nil {
		t.Fatal(err)
	}
	config, ok := passed.Config.(*runtime.Unknown)
	if !ok {
		t.Fatalf("want a configuration of the plugin, got %T", passed.Config)
	}
	var got map[string]string
	if err := json.Unmarshal(config.Raw, &got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]string{"namespace": "fleet", "name": "w1-kubeconfig", "key": "value"}, got); diff != "" {
		t.Errorf("what the plugin receives (-want +got):\n%s", diff)
	}

	// Nothing is written when nothing changed: the second cluster shows that the first was reconciled.
	writes := h.writes.Load()
	fleet.notify(h.cluster("w1").Name)
	fleet.set(h.cluster("w2"))
	eventually(t, "the second profile", func() bool { return connectedReason(h.profile(t, "capi-w2")) != "" })
	if got := h.writes.Load() - writes; got != 2 {
		t.Errorf("want the two writes of the second profile, got %d", got)
	}

	// Another program's provider stays.
	p := h.profile(t, "capi-w1")
	base := p.DeepCopy()
	p.Status.AccessProviders = append(p.Status.AccessProviders, inventoryv1alpha1.AccessProvider{Name: "theirs"})
	p.Status.AccessProviders[1].Cluster.Server = "https://theirs.example.org"
	if err := h.Status().Patch(t.Context(), p, client.MergeFrom(base)); err != nil {
		t.Fatal(err)
	}
	fleet.set(h.cluster("w1", func(c *connection.Cluster) {
		c.State, c.Reason = connection.StateBackoff, fleetv1alpha1.ReasonDialError
	}))
	eventually(t, "the lost connection", func() bool {
		return connectedReason(h.profile(t, "capi-w1")) == fleetv1alpha1.ReasonDialError
	})
	if provider() == nil {
		t.Error("want what is known of a lost cluster to be remembered")
	}
	fleet.set(h.cluster("w1"))
	eventually(t, "what cannot be published any more to go", func() bool { return provider() == nil })
	if got := h.profile(t, "capi-w1").Status.AccessProviders; len(got) != 1 || got[0].Name != "theirs" {
		t.Errorf("want the other program's provider to stay, got %v", got)
	}
}

func TestAccessProviderSaysAllOfTheEndpoint(t *testing.T) {
	cluster := testCluster(accessible)
	cluster.Access.Endpoint = credentials.Endpoint{
		Server: "https://w1", TLSServerName: "kubernetes", InsecureSkipTLSVerify: true, ProxyURL: "http://proxy:3128",
		Context: "admin",
	}
	got := accessProviders(cluster, inventoryv1alpha1.ClusterProfileStatus{})
	if len(got) != 1 {
		t.Fatalf("want one provider, got %v", got)
	}
	data, err := json.Marshal(got[0].Cluster)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"tls-server-name":"kubernetes"`, `"insecure-skip-tls-verify":true`, `"proxy-url":"http://proxy:3128"`, `"context":"admin"`} {
		if !strings.Contains(string(data), want) {
			t.Errorf("want %s in %s", want, data)
		}
	}
}
