// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package fakecloud_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/masthead-dev/masthead/internal/test/fakecloud"
	"github.com/masthead-dev/masthead/internal/test/imported"
	"github.com/masthead-dev/masthead/internal/test/providercrds"
	"github.com/masthead-dev/masthead/internal/test/testenv"
)

const (
	namespace = "default"
	region    = "eu-central-1"
)

// The hub of this package, which is its own imported cluster, and the cloud whose providers run in it.
var (
	config *rest.Config
	hub    client.Client
	cloud  = fakecloud.New()
)

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	fail := func(err error) int {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	ctrl.SetLogger(logr.Discard())
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	crds, err := providercrds.Load(ctx, append(providercrds.ManagedResources(), providercrds.ModernManagedResources()...)...)
	if err != nil {
		return fail(err)
	}
	env, err := testenv.New()
	if err != nil {
		return fail(err)
	}
	env.CRDInstallOptions.CRDs = crds
	defer func() { _ = env.Stop() }()
	if config, err = testenv.Start(env); err != nil {
		return fail(err)
	}
	config.QPS = -1
	if hub, err = client.New(config, client.Options{Scheme: clientgoscheme.Scheme}); err != nil {
		return fail(err)
	}
	done := make(chan error, 1)
	go func() { done <- cloud.Run(ctx, config) }()
	code := m.Run()
	cancel()
	if err := <-done; err != nil {
		return fail(err)
	}
	return code
}

// create creates a managed resource and removes it at the end of the test.
func create(t *testing.T, group, kind, name string, change func(*unstructured.Unstructured)) *unstructured.Unstructured {
	t.Helper()
	object, err := imported.Object(schema.GroupKind{Group: group, Kind: kind}, "v1beta1", namespace, name)
	if err != nil {
		t.Fatal(err)
	}
	if change != nil {
		change(object)
	}
	if err := hub.Create(t.Context(), object); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { remove(t, object) })
	return object
}

func remove(t *testing.T, object *unstructured.Unstructured) {
	t.Helper()
	ctx := context.WithoutCancel(t.Context())
	if err := client.IgnoreNotFound(hub.Delete(ctx, object)); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the managed resource is gone", func() (bool, string) {
		err := hub.Get(ctx, client.ObjectKeyFromObject(object), object)
		return apierrors.IsNotFound(err), fmt.Sprint(err, object.Object["status"])
	})
}

// eventually waits until a check passes.
func eventually(t *testing.T, what string, check func() (bool, string)) {
	t.Helper()
	last := ""
	if err := testenv.Poll(context.WithoutCancel(t.Context()), testenv.Patience, func(context.Context) (bool, error) {
		var ok bool
		ok, last = check()
		return ok, nil
	}); err != nil {
		t.Fatalf("%s: %v: %s", what, err, last)
	}
}

// waitCondition waits until a managed resource has a condition whose message contains a text.
func waitCondition(t *testing.T, object *unstructured.Unstructured, conditionType, status, message string) {
	t.Helper()
	eventually(t, conditionType+"="+status, func() (bool, string) {
		if err := hub.Get(t.Context(), client.ObjectKeyFromObject(object), object); err != nil {
			return false, err.Error()
		}
		conditions, _, _ := unstructured.NestedSlice(object.Object, "status", "conditions")
		return slices.ContainsFunc(conditions, func(item any) bool {
			condition := item.(map[string]any)
			text, _ := condition["message"].(string)
			return condition["type"] == conditionType && condition["status"] == status && strings.Contains(text, message)
		}), fmt.Sprint(conditions)
	})
}

func waitReady(t *testing.T, object *unstructured.Unstructured) {
	t.Helper()
	waitCondition(t, object, "Ready", "True", "")
	waitCondition(t, object, "Synced", "True", "")
}

func TestClustersAreShown(t *testing.T) {
	cloud.FailOnMutation(t)
	cloud.AddEKS(fakecloud.EKS{Region: region, Name: "shown", NodeGroups: []fakecloud.NodeGroup{{Name: "blue", Taints: []string{"a=b:NO_SCHEDULE"}}}, Fargate: []string{"serverless"}})
	cloud.AddAKS(fakecloud.AKS{ResourceGroup: "shop-group", Name: "shown", Location: "westeurope"})
	cloud.AddGKE(fakecloud.GKE{Location: "europe-west3", Name: "shown", NodePools: []fakecloud.GKENodePool{{Name: "blue"}}})
	aks := fakecloud.AKSClusterID("shop-group", "shown")
	for _, c := range []struct {
		group, kind, name string
		forProvider       map[string]any
		path              []string
		want              any
	}{
		{"eks.aws.upbound.io", "Cluster", "shown", nil, []string{"version"}, "1.31"},
		{"eks.aws.upbound.io", "Cluster", "shown", nil, []string{"vpcConfig", "0", "vpcId"}, "vpc-shown"},
		{"eks.aws.m.upbound.io", "Cluster", "shown", nil, []string{"vpcConfig", "vpcId"}, "vpc-shown"},
		{"eks.aws.upbound.io", "NodeGroup", "blue", map[string]any{"clusterName": "shown"}, []string{"scalingConfig", "0", "maxSize"}, int64(4)},
		{"eks.aws.m.upbound.io", "NodeGroup", "blue", map[string]any{"clusterName": "shown"}, []string{"taint", "0", "effect"}, "NO_SCHEDULE"},
		{"eks.aws.upbound.io", "FargateProfile", "serverless", map[string]any{"clusterName": "shown"}, []string{"status"}, "ACTIVE"},
		{"ec2.aws.upbound.io", "VPC", "vpc-shown", nil, []string{"mainRouteTableId"}, "rtb-main-shown"},
		{"ec2.aws.m.upbound.io", "Subnet", "subnet-shown-public", nil, []string{"mapPublicIpOnLaunch"}, true},
		{"ec2.aws.upbound.io", "RouteTable", "rtb-shown-public", nil, []string{"route", "0", "gatewayId"}, "igw-0a1b2c3d"},
		{"containerservice.azure.upbound.io", "KubernetesCluster", "shown", nil, []string{"defaultNodePool", "0", "name"}, "system"},
		{"containerservice.azure.m.upbound.io", "KubernetesCluster", "shown", nil, []string{"automaticUpgradeChannel"}, "patch"},
		{"containerservice.azure.m.upbound.io", "KubernetesCluster", "shown", nil, []string{"defaultNodePool", "autoScalingEnabled"}, true},
		{"containerservice.azure.upbound.io", "KubernetesClusterNodePool", "system", map[string]any{"kubernetesClusterId": aks}, []string{"mode"}, "System"},
		{"container.gcp.upbound.io", "Cluster", "shown", nil, []string{"nodePool", "0", "name"}, "blue"},
		{"container.gcp.m.upbound.io", "Cluster", "shown", nil, []string{"privateClusterConfig", "enablePrivateNodes"}, true},
		{"container.gcp.upbound.io", "NodePool", "blue", map[string]any{"cluster": "shown"}, []string{"nodeConfig", "0", "machineType"}, "e2-standard-4"},
	} {
		t.Run(c.group+"/"+c.kind, func(t *testing.T) {
			object := create(t, c.group, c.kind, c.name, func(object *unstructured.Unstructured) {
				for field, value := range c.forProvider {
					_ = unstructured.SetNestedField(object.Object, value, "spec", "forProvider", field)
				}
			})
			waitReady(t, object)
			value := object.Object["status"].(map[string]any)["atProvider"]
			for _, step := range c.path {
				if list, ok := value.([]any); ok && step == "0" && len(list) > 0 {
					value = list[0]
				} else if fields, ok := value.(map[string]any); ok {
					value = fields[step]
				} else {
					t.Fatalf("%v: there is no %q in %v", c.path, step, value)
				}
			}
			if value != c.want {
				t.Errorf("%v: want %v, got %v", c.path, c.want, value)
			}
		})
	}
}

func TestKubeconfigWorksAndRotates(t *testing.T) {
	cloud.FailOnMutation(t)
	api, err := fakecloud.ServiceAccountAPI(t.Context(), config, "imported", "cluster-admin")
	if err != nil {
		t.Fatal(err)
	}
	cloud.AddEKS(fakecloud.EKS{Region: region, Name: "rotating", API: api})
	for _, group := range []string{"eks.aws.upbound.io", "eks.aws.m.upbound.io"} {
		t.Run(group, func(t *testing.T) {
			secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: strings.ReplaceAll(group, ".", "-"), Namespace: namespace}}
			object := create(t, group, "ClusterAuth", "rotating", func(object *unstructured.Unstructured) {
				_ = unstructured.SetNestedField(object.Object, "rotating", "spec", "forProvider", "clusterName")
				reference := map[string]any{"name": secret.Name}
				if group == "eks.aws.upbound.io" {
					reference["namespace"] = namespace
				}
				_ = unstructured.SetNestedMap(object.Object, reference, "spec", "writeConnectionSecretToRef")
			})
			waitReady(t, object)
			var before []byte
			eventually(t, "the connection Secret has a kubeconfig", func() (bool, string) {
				err := hub.Get(t.Context(), client.ObjectKeyFromObject(secret), secret)
				before = secret.Data["kubeconfig"]
				return len(before) > 0, fmt.Sprint(err)
			})
			access, err := clientcmd.RESTConfigFromKubeConfig(before)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := kubernetes.NewForConfigOrDie(access).CoreV1().ConfigMaps(namespace).List(t.Context(), metav1.ListOptions{}); err != nil {
				t.Errorf("the kubeconfig does not work: %v", err)
			}
			cloud.RotateTokens()
			eventually(t, "the kubeconfig is another one", func() (bool, string) {
				err := hub.Get(t.Context(), client.ObjectKeyFromObject(secret), secret)
				return err == nil && !bytes.Equal(secret.Data["kubeconfig"], before), fmt.Sprint(err)
			})
		})
	}
}

func TestTheCloudRefuses(t *testing.T) {
	cloud.FailOnMutation(t)
	cloud.AddEKS(fakecloud.EKS{Region: region, Name: "refusing"})
	object := create(t, "eks.aws.upbound.io", "Cluster", "missing", nil)
	waitCondition(t, object, "Synced", "False", "external resource does not exist")

	cloud.Deny("eks.aws.upbound.io/Cluster")
	t.Cleanup(func() { cloud.Allow("eks.aws.upbound.io/Cluster") })
	denied := create(t, "eks.aws.upbound.io", "Cluster", "refusing", nil)
	waitCondition(t, denied, "Synced", "False", "AccessDeniedException")
	cloud.Throttle(3)
	waitCondition(t, denied, "Synced", "False", "ThrottlingException")
	cloud.Allow("eks.aws.upbound.io/Cluster")
	waitReady(t, denied)

	cloud.RemoveEKS(region, "refusing")
	waitCondition(t, denied, "Synced", "False", "external resource does not exist")

	unnamed := create(t, "containerservice.azure.upbound.io", "KubernetesCluster", "unnamed", func(object *unstructured.Unstructured) {
		unstructured.RemoveNestedField(object.Object, "spec", "forProvider", "resourceGroupName")
	})
	waitCondition(t, unnamed, "Synced", "False", "identifier")
}

// TestAKSWithoutLocation: the real provider leaves such a cluster as it is, without a condition.
func TestAKSWithoutLocation(t *testing.T) {
	cloud.AddAKS(fakecloud.AKS{ResourceGroup: "shop-group", Name: "nowhere", Location: "westeurope"})
	object := create(t, "containerservice.azure.upbound.io", "KubernetesCluster", "nowhere", func(object *unstructured.Unstructured) {
		unstructured.RemoveNestedField(object.Object, "spec", "forProvider", "location")
	})
	providers, err := cloud.Providers(config)
	if err != nil {
		t.Fatal(err)
	}
	r, err := providers.Reconciler(t.Context(), object.GroupVersionKind())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.Reconcile(t.Context(), requestFor(client.ObjectKeyFromObject(object))); err != nil {
		t.Fatal(err)
	}
	if err := hub.Get(t.Context(), client.ObjectKeyFromObject(object), object); err != nil || object.Object["status"] != nil || len(object.GetFinalizers()) > 0 {
		t.Errorf("want it to be left alone, got %v, %v, %v", object.Object["status"], object.GetFinalizers(), err)
	}
	_ = unstructured.SetNestedField(object.Object, "westeurope", "spec", "forProvider", "location")
	if err := hub.Update(t.Context(), object); err != nil {
		t.Fatal(err)
	}
	waitReady(t, object)
}

func TestMutationsAreCounted(t *testing.T) {
	own := fakecloud.New()
	own.AddEKS(fakecloud.EKS{Region: region, Name: "touched", NodeGroups: []fakecloud.NodeGroup{{Name: "green"}}})
	providers, err := own.Providers(config)
	if err != nil {
		t.Fatal(err)
	}
	kind := schema.GroupVersionKind{Group: "ec2.aws.upbound.io", Version: "v1beta1", Kind: "VPC"}
	reconciler, err := providers.Reconciler(t.Context(), kind)
	if err != nil {
		t.Fatal(err)
	}
	// The cloud that all tests of this package share does not know the VPC. Its providers would create the VPC if they
	// could see that it is missing, so reading it is denied.
	cloud.Deny("ec2.aws.upbound.io/VPC")
	object := create(t, kind.Group, kind.Kind, "vpc-touched", func(object *unstructured.Unstructured) {
		unstructured.RemoveNestedField(object.Object, "spec", "managementPolicies")
		unstructured.RemoveNestedField(object.Object, "spec", "deletionPolicy")
	})
	t.Cleanup(func() { cloud.Allow("ec2.aws.upbound.io/VPC") })
	key := client.ObjectKeyFromObject(object)
	reconcileUntil := func(verb string) {
		t.Helper()
		eventually(t, verb+" is counted", func() (bool, string) {
			_, err := reconciler.Reconcile(t.Context(), requestFor(key))
			return slices.ContainsFunc(own.Mutations(), func(m fakecloud.Mutation) bool {
				return m.Verb == verb && m.Kind == "ec2.aws.upbound.io/VPC"
			}), fmt.Sprint(err, own.Mutations())
		})
	}
	reconcileUntil("Update")
	if err := hub.Delete(t.Context(), object); err != nil {
		t.Fatal(err)
	}
	reconcileUntil("Delete")
}

func requestFor(key client.ObjectKey) reconcile.Request {
	return reconcile.Request{NamespacedName: key}
}
