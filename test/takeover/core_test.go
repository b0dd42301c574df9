// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package takeover_test

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/masthead-dev/masthead/internal/test/imported"
	"github.com/masthead-dev/masthead/internal/test/providercrds"
	"github.com/masthead-dev/masthead/internal/test/testenv"
	"github.com/masthead-dev/masthead/test/bench/auditlog"
	"github.com/masthead-dev/masthead/test/localfleet"
)

// coreFleet is a hub with Cluster API core, and a cluster that the rows of the test import one after the other.
type coreFleet struct {
	t     *testing.T
	fleet *localfleet.Fleet
	// hub and cluster are clients of the administrators of the two.
	hub, cluster client.Client
	// imports is a client for ClusterImports, in the tests that run the importer.
	imports client.Client
}

// TestClusterAPICore makes Cluster API core itself reconcile an imported cluster for which it has an administrator's
// credentials, or none, and checks the cluster's audit log for what core wrote there.
func TestClusterAPICore(t *testing.T) { //nolint:tparallel // Its rows share the fleet.
	t.Parallel() // It has its own fleet.
	f := newCoreFleet(t, testenv.CRDs())
	members := f.installMembers()
	found := &table{name: "core", header: []string{"Guard removed", "Still safe?", "Node annotated", "Node deleted"}}
	for _, c := range []struct {
		name             string
		unpaused, listed bool
		// foreign: another user creates a MachinePool for the cluster, which succeeds only without the policy about members.
		foreign, withoutPolicy bool
		// withheld leaves core without credentials.
		withheld bool
		harm     bool
	}{
		{name: "none"},
		{name: "annotation paused of the MachinePool", unpaused: true},
		{name: "empty providerIDList", listed: true},
		{name: "both", unpaused: true, listed: true, harm: true},
		{name: "both, while the credentials are withheld", unpaused: true, listed: true, withheld: true},
		{name: "none, and another client creates a MachinePool", foreign: true},
		{name: "policy `members`, and another client creates a MachinePool", foreign: true, withoutPolicy: true, harm: true},
		{name: "the same, while the credentials are withheld", foreign: true, withoutPolicy: true, withheld: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			row := coreRow{
				coreFleet: f, name: fmt.Sprintf("row%d", len(found.rows)), unpaused: c.unpaused, listed: c.listed, foreign: c.foreign, withheld: c.withheld,
			}
			row.t = t
			if c.withoutPolicy {
				members.remove(t)
			}
			row.create()
			if c.foreign {
				row.createForeign(c.withoutPolicy)
			}
			row.waitReconciled()
			if c.harm {
				row.waitHarm()
			}
			writes := row.writes()
			annotated, deleted := writes["patch nodes"]+writes["update nodes"], writes["delete nodes"]
			switch {
			case !c.harm && len(writes) > 0:
				t.Errorf("Cluster API core wrote to the imported cluster: %v", writes)
			case c.harm && (annotated == 0 || deleted == 0):
				t.Errorf("without the guards core must annotate and delete Nodes, or the test proves nothing: %v", writes)
			}
			found.add(c.name, verdict(len(writes) == 0), did(annotated), did(deleted))
		})
	}
	if !t.Failed() {
		found.check(t)
	}
}

// writeCRDs writes the CRDs of some kinds into a folder.
func writeCRDs(t *testing.T, kinds ...schema.GroupKind) string {
	t.Helper()
	folder := t.TempDir()
	if _, err := providercrds.Write(t.Context(), folder, kinds...); err != nil {
		t.Fatal(err)
	}
	return folder
}

// newCoreFleet starts a fleet whose hub serves the reflected kinds, and has the objects of the manifests in the
// folders.
func newCoreFleet(t *testing.T, manifests ...string) coreFleet {
	t.Helper()
	manifests = append(manifests, writeCRDs(t, providercrds.Reflected()...))
	fleet, err := localfleet.Up(t.Context(), localfleet.Options{
		Dir: t.TempDir(), Workloads: localfleet.WorkloadNames(1), WithClusterAPI: true, HubManifests: manifests, Audit: true, StopWithParent: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			content, _ := os.ReadFile(fleet.Log(localfleet.HubName, localfleet.ClusterAPI))
			t.Logf("the log of Cluster API core ends with:\n%s", content[max(0, len(content)-4000):])
		}
		if err := fleet.Down(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	f := coreFleet{t: t, fleet: fleet}
	for name, into := range map[string]*client.Client{localfleet.HubName: &f.hub, "w1": &f.cluster} {
		config, err := fleet.Config(name)
		if err != nil {
			t.Fatal(err)
		}
		if *into, err = client.New(config, client.Options{Scheme: clientgoscheme.Scheme}); err != nil {
			t.Fatal(err)
		}
	}
	return f
}

// coreRow is one import, with a guard removed or none. Its objects, its Nodes and core's user in the cluster have its
// name.
type coreRow struct {
	coreFleet
	name              string
	unpaused, listed  bool
	foreign, accepted bool
	withheld          bool
}

func (r *coreRow) user() string { return "core-" + r.name }

func (r *coreRow) providerIDs() []string {
	return []string{"aws:///eu-central-1a/i-" + r.name + "-1", "aws:///eu-central-1a/i-" + r.name + "-2"}
}

func (r *coreRow) node(i int) *corev1.Node {
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("%s-%d", r.name, i)}, Spec: corev1.NodeSpec{ProviderID: r.providerIDs()[i-1]},
	}
}

func (r *coreRow) object(kind schema.GroupKind, version string) *unstructured.Unstructured {
	object, err := imported.Object(kind, version, namespace, r.name)
	if err != nil {
		r.t.Fatal(err)
	}
	return object
}

func (r *coreRow) infrastructure(kind string) *unstructured.Unstructured {
	return r.object(schema.GroupKind{Group: infrastructureGroup, Kind: kind}, "v1beta2")
}

func (r *coreRow) machinePool() *unstructured.Unstructured {
	return r.object(schema.GroupKind{Group: "cluster.x-k8s.io", Kind: "MachinePool"}, "v1beta2")
}

// create creates what an import creates, in the same order.
func (r *coreRow) create() {
	r.t.Helper()
	for i := range r.providerIDs() {
		if err := r.cluster.Create(r.t.Context(), r.node(i+1)); err != nil {
			r.t.Fatal(err)
		}
	}
	kubeconfig, err := r.fleet.UserKubeconfig("w1", r.user(), "system:masters")
	if err != nil {
		r.t.Fatal(err)
	}
	config, err := clientcmd.RESTConfigFromKubeConfig(kubeconfig)
	if err != nil {
		r.t.Fatal(err)
	}
	host, port, _ := strings.Cut(strings.TrimPrefix(config.Host, "https://"), ":")
	endpoint := map[string]any{"host": host, "port": number(r.t, port)}

	cluster := r.infrastructure("AWSManagedCluster")
	r.set(cluster, endpoint, "spec", "controlPlaneEndpoint")
	r.createWithStatus(cluster, map[string]any{"ready": true})

	controlPlane := r.object(schema.GroupKind{Group: controlPlaneGroup, Kind: "AWSManagedControlPlane"}, "v1beta2")
	r.set(controlPlane, endpoint, "spec", "controlPlaneEndpoint")
	r.createWithStatus(controlPlane, map[string]any{"ready": true, "initialized": true, "externalManagedControlPlane": true, "version": "v1.31.3"})

	pool := r.infrastructure("AWSManagedMachinePool")
	if r.listed {
		r.set(pool, r.list(r.providerIDs()), "spec", "providerIDList")
	}
	r.createWithStatus(pool, map[string]any{"ready": true, "replicas": int64(2)})

	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: r.name + "-kubeconfig", Namespace: namespace, Labels: map[string]string{"cluster.x-k8s.io/cluster-name": r.name}},
		Type:       "cluster.x-k8s.io/secret",
		Data:       map[string][]byte{"value": kubeconfig},
	}
	if !r.withheld {
		if err := r.hub.Create(r.t.Context(), secret); err != nil {
			r.t.Fatal(err)
		}
	}
	if err := r.hub.Create(r.t.Context(), r.object(schema.GroupKind{Group: "cluster.x-k8s.io", Kind: "Cluster"}, "v1beta2")); err != nil {
		r.t.Fatal(err)
	}
	machinePool := r.machinePool()
	r.set(machinePool, r.name, "spec", "clusterName")
	r.set(machinePool, r.name, "spec", "template", "spec", "clusterName")
	r.set(machinePool, int64(2), "spec", "replicas")
	if r.unpaused {
		dropAnnotation(machinePool, imported.PausedAnnotation)
	}
	if r.foreign {
		machinePool.SetLabels(map[string]string{imported.UIDLabel: string(r.createImport())})
	}
	if err := r.hub.Create(r.t.Context(), machinePool); err != nil {
		r.t.Fatal(err)
	}
}

// waitReconciled waits until core is connected to the cluster, if it has credentials, and has reconciled the
// MachinePools or reports that they are paused.
func (r *coreRow) waitReconciled() {
	r.t.Helper()
	if !r.withheld {
		r.waitCondition(r.object(schema.GroupKind{Group: "cluster.x-k8s.io", Kind: "Cluster"}, "v1beta2"), "RemoteConnectionProbe", "True")
	}
	paused := "True"
	if r.unpaused {
		paused = "False"
	}
	r.waitCondition(r.machinePool(), "Paused", paused)
	if r.unpaused {
		r.waitLookedAt(r.machinePool())
	}
	if r.accepted {
		r.waitLookedAt(r.foreignPool())
	}
}

// waitLookedAt waits until core has reconciled a MachinePool that is not paused, and has listed the Nodes, if it can.
func (r *coreRow) waitLookedAt(pool *unstructured.Unstructured) {
	r.t.Helper()
	r.waitFor("core has looked at the pool", func(ctx context.Context) (bool, string) {
		err := r.hub.Get(ctx, client.ObjectKeyFromObject(pool), pool)
		ready, _, _ := unstructured.NestedBool(pool.Object, "status", "initialization", "infrastructureProvisioned")
		return ready, fmt.Sprint(err, pool.Object["status"])
	})
	if r.withheld {
		return
	}
	// Core decides about Nodes once it has listed them.
	r.waitFor("core has listed the Nodes", func(context.Context) (bool, string) {
		requests := r.requests()
		return slices.ContainsFunc(slices.Collect(maps.Keys(requests)), func(request auditlog.Request) bool {
			return request.Resource == "nodes"
		}), requests.String()
	})
}

// waitHarm waits until core has annotated the Nodes, removes one from the list, and waits until core has deleted it.
func (r *coreRow) waitHarm() {
	r.t.Helper()
	r.waitFor("core has annotated the Node", func(ctx context.Context) (bool, string) {
		node := r.node(1)
		err := r.cluster.Get(ctx, client.ObjectKeyFromObject(node), node)
		return node.Annotations["cluster.x-k8s.io/cluster-name"] == r.name, fmt.Sprint(err, node.Annotations)
	})
	r.waitFor("the list is shorter", func(ctx context.Context) (bool, string) {
		pool := r.infrastructure("AWSManagedMachinePool")
		if r.accepted {
			pool = r.foreignInfrastructure()
		}
		if err := r.hub.Get(ctx, client.ObjectKeyFromObject(pool), pool); err != nil {
			return false, err.Error()
		}
		r.set(pool, r.list(r.providerIDs()[:1]), "spec", "providerIDList")
		err := r.hub.Update(ctx, pool)
		return err == nil, fmt.Sprint(err)
	})
	r.waitFor("core has deleted the Node", func(ctx context.Context) (bool, string) {
		node := r.node(2)
		err := r.cluster.Get(ctx, client.ObjectKeyFromObject(node), node)
		return apierrors.IsNotFound(err), fmt.Sprint(err)
	})
}

// requests counts core's requests to the cluster.
func (r *coreRow) requests() auditlog.Counts {
	r.t.Helper()
	content, err := os.ReadFile(r.fleet.AuditLog("w1"))
	if err != nil {
		r.t.Fatal(err)
	}
	// The API server may be writing its last line.
	counts, err := auditlog.Count(content[:bytes.LastIndexByte(content, '\n')+1], r.user())
	if err != nil {
		r.t.Fatal(err)
	}
	return counts
}

// writes counts core's writes to the cluster, by verb and resource.
func (r *coreRow) writes() map[string]int {
	r.t.Helper()
	requests := r.requests()
	if queried := len(requests) > 0; queried == r.withheld {
		r.t.Fatalf("core asks the cluster if it has credentials, or the test proves nothing: withheld: %v, %v", r.withheld, requests)
	}
	writes := map[string]int{}
	for request, n := range requests {
		if request.Writes() {
			writes[request.Verb+" "+request.Resource] += n
		}
	}
	return writes
}

func (r *coreRow) createWithStatus(object *unstructured.Unstructured, status map[string]any) {
	r.t.Helper()
	if err := r.hub.Create(r.t.Context(), object); err != nil {
		r.t.Fatal(err)
	}
	r.set(object, status, "status")
	if err := r.hub.Status().Update(r.t.Context(), object); err != nil {
		r.t.Fatal(err)
	}
}

func (r *coreRow) set(object *unstructured.Unstructured, value any, path ...string) {
	r.t.Helper()
	if err := unstructured.SetNestedField(object.Object, value, path...); err != nil {
		r.t.Fatal(err)
	}
}

func (r *coreRow) list(values []string) []any {
	list := make([]any, 0, len(values))
	for _, value := range values {
		list = append(list, value)
	}
	return list
}

func (r *coreRow) waitCondition(object *unstructured.Unstructured, conditionType, status string) {
	r.t.Helper()
	r.waitFor(object.GetKind()+" has "+conditionType+"="+status, func(ctx context.Context) (bool, string) {
		err := r.hub.Get(ctx, client.ObjectKeyFromObject(object), object)
		conditions, _, _ := unstructured.NestedSlice(object.Object, "status", "conditions")
		return slices.ContainsFunc(conditions, func(item any) bool {
			condition, ok := item.(map[string]any)
			return ok && condition["type"] == conditionType && condition["status"] == status
		}), fmt.Sprint(err, conditions)
	})
}

func (r *coreRow) waitFor(what string, check func(context.Context) (bool, string)) {
	r.t.Helper()
	last := ""
	if err := testenv.Poll(r.t.Context(), testenv.Patience, func(ctx context.Context) (bool, error) {
		var ok bool
		ok, last = check(ctx)
		return ok, nil
	}); err != nil {
		r.t.Fatalf("%s: %v: %s", what, err, last)
	}
}

func number(t *testing.T, text string) int64 {
	t.Helper()
	var n int64
	if _, err := fmt.Sscan(text, &n); err != nil {
		t.Fatalf("%q is no port: %v", text, err)
	}
	return n
}
