// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/masthead-dev/masthead/test/harness"
	"github.com/masthead-dev/masthead/test/localfleet"
)

const hub = localfleet.HubName

// kubectl runs kubectl against one cluster of the fleet and fails the spec if kubectl fails.
func kubectl(ctx context.Context, cluster string, args ...string) string {
	GinkgoHelper()
	out, err := harness.Kubectl(ctx, fleet, cluster, args...)
	Expect(err).NotTo(HaveOccurred())
	return out
}

// get returns the value of a JSONPath in an object, or "" if there is no such object or field.
func get(ctx context.Context, cluster, path string, args ...string) string {
	GinkgoHelper()
	out, err := tryGet(ctx, cluster, path, args...)
	Expect(err).NotTo(HaveOccurred())
	return out
}

// tryGet is get for a kind that may not be served yet: it returns that as an error, which Eventually can wait out.
func tryGet(ctx context.Context, cluster, path string, args ...string) (string, error) {
	out, err := objects.Get(ctx, cluster, path, args...)
	return strings.TrimSpace(out), err
}

// patch changes an object with a merge patch.
func patch(ctx context.Context, cluster, change string, args ...string) {
	GinkgoHelper()
	Expect(objects.Patch(ctx, cluster, change, args...)).To(Succeed())
}

func enrol(ctx context.Context, clusters ...string) {
	GinkgoHelper()
	for _, name := range clusters {
		patch(ctx, hub, `{"metadata":{"labels":{"masthead.dev/enroll":"true"}}}`, "clusters.cluster.x-k8s.io", name)
	}
}

func unenrol(ctx context.Context, clusters ...string) {
	GinkgoHelper()
	for _, name := range clusters {
		patch(ctx, hub, `{"metadata":{"labels":{"masthead.dev/enroll":null}}}`, "clusters.cluster.x-k8s.io", name)
	}
}

// condition is what a ClusterProfile reports about a cluster: "True/Connected", or "" if there is none.
func condition(ctx context.Context, name, conditionType string) string {
	GinkgoHelper()
	return get(ctx, hub, fmt.Sprintf(`{range .status.conditions[?(@.type=="%s")]}{.status}/{.reason}{end}`, conditionType),
		"clusterprofiles", "capi-"+name)
}

func connection(ctx context.Context, name string) string {
	GinkgoHelper()
	return condition(ctx, name, "Connected")
}

func eventuallyConnected(ctx context.Context, clusters ...string) {
	GinkgoHelper()
	for _, name := range clusters {
		Eventually(connection).WithArguments(ctx, name).WithContext(ctx).Should(Equal("True/Connected"), "cluster %s", name)
	}
}

// eventuallyServesRequirements waits until a user of the cluster could create a requirement.
func eventuallyServesRequirements(ctx context.Context, clusters ...string) {
	GinkgoHelper()
	for _, name := range clusters {
		eventuallyServes(ctx, name, "mysqlinstancerequirements.database.acmeco.org")
	}
}

// eventuallyServes waits until a cluster serves a resource. Its definition is established a moment earlier.
func eventuallyServes(ctx context.Context, cluster, resource string) {
	GinkgoHelper()
	Eventually(func() error {
		_, err := tryGet(ctx, cluster, "{.kind}", resource)
		return err
	}).WithContext(ctx).Should(Succeed(), "cluster %s serves %s", cluster, resource)
}

// established returns whether a cluster has accepted a definition: "True", or "" or an error, since for a moment a new
// definition has no list of conditions.
func established(ctx context.Context, cluster, crd string) (string, error) {
	return tryGet(ctx, cluster, `{.status.conditions[?(@.type=="Established")].status}`, "crd", crd)
}

// claim creates a requirement in the namespace default of a workload cluster.
func claim(ctx context.Context, cluster, name string, annotations ...string) {
	GinkgoHelper()
	notes := map[string]string{}
	for i := 0; i+1 < len(annotations); i += 2 {
		notes[annotations[i]] = annotations[i+1]
	}
	encoded, err := json.Marshal(notes)
	Expect(err).NotTo(HaveOccurred())
	Expect(harness.Apply(ctx, fleet, cluster, fmt.Sprintf(`
apiVersion: database.acmeco.org/v1alpha1
kind: MySQLInstanceRequirement
metadata:
  name: %s
  namespace: default
  annotations: %s
spec:
  version: "5.7"
  storageGB: 20
  writeConnectionSecretToRef:
    name: %s-creds
`, name, encoded, name))).To(Succeed())
}

func deleteClaim(ctx context.Context, cluster, name string) {
	GinkgoHelper()
	kubectl(ctx, cluster, "delete", "mysqlinstancerequirements", name, "--ignore-not-found", "--wait=false")
}

// sourceInHub is the source of the requirement's object in the hub, as UID/namespace, or "" if there is none.
func sourceInHub(ctx context.Context, name string) string {
	GinkgoHelper()
	return get(ctx, hub, `{.metadata.annotations.agent\.crossplane\.io/source-uid}/{.metadata.annotations.agent\.crossplane\.io/source-namespace}`,
		"mysqlinstancerequirements", name, "--namespace", "bar")
}

// eventuallyReady waits until Crossplane has provisioned a requirement in the hub. Before that, Crossplane fills in one
// field of the spec after the other.
func eventuallyReady(ctx context.Context, name string) {
	GinkgoHelper()
	Eventually(tryGet).WithArguments(ctx, hub, `{range .status.conditions[?(@.type=="Ready")]}{.status}{end}`,
		"mysqlinstancerequirements", name, "--namespace", "bar").WithContext(ctx).Should(Equal("True"), "requirement %s", name)
}

// agentSynced is what the agent reports about a requirement: "True/Synced".
func agentSynced(ctx context.Context, cluster, name string) string {
	GinkgoHelper()
	return get(ctx, cluster, `{range .status.conditions[?(@.type=="AgentSynced")]}{.status}/{.reason}{end}`,
		"mysqlinstancerequirements", name)
}

// travels checks that the manager works on a cluster: a requirement that is created there is carried to the hub and
// answered.
func travels(ctx context.Context, cluster, name string) {
	GinkgoHelper()
	claim(ctx, cluster, name)
	Eventually(agentSynced).WithArguments(ctx, cluster, name).WithContext(ctx).Should(Equal("True/Synced"), "requirement %s of cluster %s", name, cluster)
	DeferCleanup(func(ctx context.Context) { cleanClaim(ctx, cluster, name) })
}

// cleanClaim removes a requirement completely, even if its cluster is no longer connected.
func cleanClaim(ctx context.Context, cluster, name string) {
	GinkgoHelper()
	if get(ctx, cluster, "{.metadata.name}", "crd", "mysqlinstancerequirements.database.acmeco.org") != "" {
		connected := strings.HasPrefix(connection(ctx, cluster), "True")
		deleteClaim(ctx, cluster, name)
		if !connected {
			if get(ctx, cluster, "{.metadata.name}", "mysqlinstancerequirements", name) != "" {
				_, _ = harness.Kubectl(ctx, fleet, cluster, "patch", "mysqlinstancerequirements", name, "--type=merge", "-p", `{"metadata":{"finalizers":null}}`)
			}
			kubectl(ctx, hub, "delete", "mysqlinstancerequirements", name, "--namespace", "bar", "--ignore-not-found", "--wait=false")
		}
		Eventually(func() string {
			return get(ctx, cluster, "{.metadata.name}", "mysqlinstancerequirements", name)
		}).WithContext(ctx).Should(BeEmpty())
	}
	Eventually(sourceInHub).WithArguments(ctx, name).WithContext(ctx).Should(BeEmpty())
}

// others are the workload clusters except one.
func others(one string) []string {
	return slices.DeleteFunc(slices.Clone(workloads), func(name string) bool { return name == one })
}

// enrolAll enrols clusters for one spec.
func enrolAll(ctx context.Context, clusters ...string) {
	GinkgoHelper()
	enrol(ctx, clusters...)
	DeferCleanup(func(ctx context.Context) {
		unenrol(ctx, clusters...)
		for _, name := range clusters {
			Eventually(connection).WithArguments(ctx, name).WithContext(ctx).Should(BeEmpty(), "no profile is left of %s", name)
		}
	})
	eventuallyConnected(ctx, clusters...)
	eventuallyServesRequirements(ctx, clusters...)
}

func metrics(ctx context.Context) harness.Metrics {
	GinkgoHelper()
	m, err := manager.Metrics(ctx)
	Expect(err).NotTo(HaveOccurred())
	return m
}

// clusterName is the manager's name for a Cluster in the namespace default.
func clusterName(name string) string { return "capi/default/" + name }

// clusterLabels are the labels of the metrics of a Cluster of the namespace default, and more of them.
func clusterLabels(name string, more ...string) []string {
	return append([]string{"cluster_namespace", "default", "cluster_name", name, "source", "capi"}, more...)
}
