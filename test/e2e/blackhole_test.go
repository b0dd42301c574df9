// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"encoding/base64"
	"fmt"
	"net"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/masthead-dev/masthead/test/harness"
)

// blackHole is an address that accepts connections and never answers, until the spec ends.
func blackHole() string {
	GinkgoHelper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	Expect(err).NotTo(HaveOccurred())
	done := make(chan struct{})
	go func() {
		defer close(done)
		var held []net.Conn
		for {
			c, err := l.Accept()
			if err != nil {
				break
			}
			held = append(held, c)
		}
		for _, c := range held {
			_ = c.Close()
		}
	}()
	DeferCleanup(func() {
		Expect(l.Close()).To(Succeed())
		<-done
	})
	return l.Addr().String()
}

// registerBlackHole creates an enrolled Cluster whose API server never answers.
func registerBlackHole(ctx context.Context, name string) {
	GinkgoHelper()
	kubeconfig := fmt.Sprintf(`{"apiVersion": "v1", "kind": "Config", "current-context": "c",
 "clusters": [{"name": "c", "cluster": {"server": "https://%s"}}],
 "users": [{"name": "u", "user": {"token": "never-seen-by-anybody"}}],
 "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}]}`, blackHole())
	Expect(harness.Apply(ctx, fleet, hub, fmt.Sprintf(`
apiVersion: v1
kind: Secret
metadata:
  name: %[1]s-kubeconfig
  namespace: default
  labels: {cluster.x-k8s.io/cluster-name: %[1]s}
type: cluster.x-k8s.io/secret
data: {value: %[2]s}
---
apiVersion: cluster.x-k8s.io/v1beta2
kind: Cluster
metadata:
  name: %[1]s
  namespace: default
  labels: {masthead.dev/enroll: "true"}
spec:
  controlPlaneEndpoint: {host: 127.0.0.1, port: 1}
  infrastructureRef: {apiGroup: infrastructure.localfleet.masthead.dev, kind: LocalCluster, name: %[1]s}
`, name, base64.StdEncoding.EncodeToString([]byte(kubeconfig))))).To(Succeed())
	DeferCleanup(func(ctx context.Context) {
		kubectl(ctx, hub, "delete", "clusters.cluster.x-k8s.io", name, "--wait=false")
		kubectl(ctx, hub, "delete", "secret", name+"-kubeconfig")
		Eventually(connection).WithArguments(ctx, name).WithContext(ctx).Should(BeEmpty())
	})
	// The real Cluster API core finds no infrastructure and does not change this. Without this status the manager would
	// not consider the cluster ready, and would not try to connect.
	kubectl(ctx, hub, "patch", "clusters.cluster.x-k8s.io", name, "--subresource=status", "--type=merge", "-p",
		`{"status":{"initialization":{"infrastructureProvisioned":true,"controlPlaneInitialized":true}}}`)
}

var _ = Describe("A cluster that never answers", needs(localProcesses, "listens where no Pod can reach it"), func() {
	It("delays no other cluster when it is enrolled before the manager starts", func(ctx SpecContext) {
		Expect(manager.Stop(ctx)).To(Succeed())
		registerBlackHole(ctx, "abyss")
		// If the manager does not start, nothing else un-enrols these clusters.
		DeferCleanup(func(ctx context.Context) { unenrol(ctx, "w1", "w2") })
		enrol(ctx, "w1", "w2")
		startManager(ctx)
		enrolAll(ctx, "w1", "w2")
		travels(ctx, "w1", "beside-abyss-1")
		travels(ctx, "w2", "beside-abyss-2")
		Eventually(connection).WithArguments(ctx, "abyss").WithContext(ctx).Should(Equal("False/DialError"))
		Expect(manager.Alive(ctx)).To(BeTrue())
	})

	It("delays no other cluster when it is enrolled first and the manager runs", func(ctx SpecContext) {
		registerBlackHole(ctx, "abyss-2")
		Eventually(connection).WithArguments(ctx, "abyss-2").WithContext(ctx).ShouldNot(BeEmpty())
		enrolAll(ctx, "w1", "w2")
		travels(ctx, "w1", "after-abyss-1")
		travels(ctx, "w2", "after-abyss-2")
		Eventually(connection).WithArguments(ctx, "abyss-2").WithContext(ctx).Should(Equal("False/DialError"))
	})

	It("delays no other cluster when many of them are enrolled", secondFleet, func(ctx SpecContext) {
		for i := range 30 {
			registerBlackHole(ctx, fmt.Sprintf("abyss-%02d", i))
		}
		enrolAll(ctx, "w1")
		travels(ctx, "w1", "beside-many")
	})
})
