// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	clocktesting "k8s.io/utils/clock/testing"
	inventoryv1alpha1 "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/yaml"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/config/crd/workload"
	"github.com/masthead-dev/masthead/internal/cli/fleet"
	"github.com/masthead-dev/masthead/internal/test/testenv"
	"github.com/masthead-dev/masthead/pkg/controllers/inventory"
	"github.com/masthead-dev/masthead/pkg/providers/connection"
)

// The API servers of a hub and of a workload cluster, started by the first test that needs them. Each test has its own
// namespaces in them.
var (
	servers      []*envtest.Environment
	startServers = sync.OnceValues(func() (*testFleet, error) {
		ctx := context.Background()
		profiles, err := testenv.ModuleCRDs(ctx, "sigs.k8s.io/cluster-inventory-api", "config/crd/bases")
		if err != nil {
			return nil, err
		}
		clusterAPI, err := testenv.ClusterAPICRDs(ctx)
		if err != nil {
			return nil, err
		}
		f := &testFleet{}
		if f.hub, err = startServer(f, "hub", testenv.CRDs(), filepath.Join(profiles, "multicluster.x-k8s.io_clusterprofiles.yaml"),
			filepath.Join(clusterAPI, "cluster.x-k8s.io_clusters.yaml")); err != nil {
			return nil, err
		}
		if f.workload, err = startServer(f, "workload"); err != nil {
			return nil, err
		}
		application := &apiextensionsv1.CustomResourceDefinition{}
		if err := yaml.Unmarshal(workload.Applications, application); err != nil {
			return nil, err
		}
		if err := install(f.workload, application); err != nil {
			return nil, err
		}
		for _, d := range []struct {
			c            client.Client
			group        string
			kind, plural string
			scope        apiextensionsv1.ResourceScope
		}{
			{f.hub, "apiextensions.crossplane.io", "CompositeResourceDefinition", "compositeresourcedefinitions", apiextensionsv1.ClusterScoped},
			{f.hub, "db.test.dev", "Database", "databases", apiextensionsv1.NamespaceScoped},
			{f.hub, "db.test.dev", "XDatabase", "xdatabases", apiextensionsv1.ClusterScoped},
			{f.hub, "db.test.dev", "Refused", "refuseds", apiextensionsv1.NamespaceScoped},
			{f.hub, "cloud.test.dev", "Bucket", "buckets", apiextensionsv1.ClusterScoped},
			{f.workload, "db.test.dev", "Database", "databases", apiextensionsv1.NamespaceScoped},
		} {
			if err := install(d.c, openCRD(d.group, d.kind, d.plural, d.scope)); err != nil {
				return nil, err
			}
		}
		return f, nil
	})
)

func TestMain(m *testing.M) {
	code := m.Run()
	for _, s := range servers {
		_ = s.Stop()
	}
	os.Exit(code)
}

// testFleet is a hub and a workload cluster.
type testFleet struct {
	hub, workload client.Client

	// kubeconfigs are the paths of the files, and contents what they contain, by the name of the server.
	kubeconfigs map[string]string
	contents    map[string][]byte
}

func startServer(f *testFleet, name string, crds ...string) (client.Client, error) {
	env, err := testenv.New(crds...)
	if err != nil {
		return nil, err
	}
	servers = append(servers, env)
	cfg, err := testenv.Start(env)
	if err != nil {
		return nil, fmt.Errorf("cannot start the API server %s: %w", name, err)
	}
	if f.contents == nil {
		f.contents, f.kubeconfigs = map[string][]byte{}, map[string]string{}
	}
	folder, err := os.MkdirTemp("", "cli")
	if err != nil {
		return nil, err
	}
	f.kubeconfigs[name], f.contents[name] = filepath.Join(folder, name), env.KubeConfig
	if err := os.WriteFile(f.kubeconfigs[name], env.KubeConfig, 0o600); err != nil {
		return nil, err
	}
	return client.New(cfg, client.Options{Scheme: fleet.Scheme()})
}

// install creates a definition and waits until it is served.
func install(c client.Client, crd *apiextensionsv1.CustomResourceDefinition) error {
	ctx := context.Background()
	if err := c.Create(ctx, crd); err != nil {
		return fmt.Errorf("cannot install %s: %w", crd.Name, err)
	}
	return waitFor(ctx, func() bool {
		if err := c.Get(ctx, client.ObjectKeyFromObject(crd), crd); err != nil {
			return false
		}
		for _, condition := range crd.Status.Conditions {
			if condition.Type == apiextensionsv1.Established && condition.Status == apiextensionsv1.ConditionTrue {
				return true
			}
		}
		return false
	})
}

func waitFor(ctx context.Context, done func() bool) error {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	for !done() {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(20 * time.Millisecond):
		}
	}
	return nil
}

// openCRD is a definition whose objects can have any fields.
func openCRD(group, kind, plural string, scope apiextensionsv1.ResourceScope) *apiextensionsv1.CustomResourceDefinition {
	return &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: plural + "." + group},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: group, Scope: scope,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: plural, Kind: kind},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: "v1", Served: true, Storage: true,
				Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{
					Type: "object", XPreserveUnknownFields: new(true),
				}},
				Subresources: &apiextensionsv1.CustomResourceSubresources{Status: &apiextensionsv1.CustomResourceSubresourceStatus{}},
			}},
		},
	}
}

// start returns the fleet, and a namespace in both clusters for the test.
func start(t *testing.T) (*testFleet, string) {
	t.Helper()
	f, err := startServers()
	if err != nil {
		t.Fatal(err)
	}
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "cli-"}}
	if err := f.hub.Create(t.Context(), ns); err != nil {
		t.Fatal(err)
	}
	if err := f.workload.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: ns.Name}}); err != nil {
		t.Fatal(err)
	}
	return f, ns.Name
}

// now is the current time for the commands of tests.
func now() time.Time { return time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC) }

// run runs a command against the hub, and returns what it printed and its exit code.
func (f *testFleet) run(t *testing.T, arguments ...string) (out, errOut string, code int) {
	t.Helper()
	return f.runWith(t, "", arguments...)
}

// runWith is run with the user's input.
func (f *testFleet) runWith(t *testing.T, typed string, arguments ...string) (out, errOut string, code int) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	code = Run(t.Context(), Options{
		Arguments: append([]string{"--kubeconfig", f.kubeconfigs["hub"], "--allow-loopback-endpoints"}, arguments...),
		Streams:   genericiooptions.IOStreams{In: bytes.NewBufferString(typed), Out: &stdout, ErrOut: &stderr},
		Getenv:    func(string) string { return "" },
		Clock:     clocktesting.NewFakePassiveClock(now()),
	})
	return stdout.String(), stderr.String(), code
}

// apply creates the objects of a document, with their statuses.
func apply(t *testing.T, c client.Client, documents ...string) {
	t.Helper()
	for _, document := range documents {
		u := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(document), u); err != nil {
			t.Fatalf("%v in:\n%s", err, document)
		}
		status, has := u.Object["status"]
		if err := c.Create(t.Context(), u); err != nil {
			t.Fatalf("cannot create %s: %v", u.GetName(), err)
		}
		if !has {
			continue
		}
		u.Object["status"] = status
		if err := c.Status().Update(t.Context(), u); err != nil {
			t.Fatalf("cannot write the status of %s: %v", u.GetName(), err)
		}
	}
}

// enroll creates a kubeconfig Secret that leads to the workload cluster, and the ClusterProfile that Masthead makes of
// it.
func (f *testFleet) enroll(t *testing.T, namespace, name string, conditions ...metav1.Condition) {
	t.Helper()
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{fleetv1alpha1.EnrollLabel: namespace}},
		Data:       map[string][]byte{"kubeconfig": f.contents["workload"]},
	}
	if err := f.hub.Create(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
	f.publish(t, connection.Key{Source: "kubeconfig", Namespace: namespace, Name: name}, namespace, conditions...)
}

// publish creates the ClusterProfile of an enrolled object. Without conditions it is connected.
func (f *testFleet) publish(t *testing.T, key connection.Key, class string, conditions ...metav1.Condition) {
	t.Helper()
	if len(conditions) == 0 {
		conditions = []metav1.Condition{{Type: fleetv1alpha1.ConditionConnected, Status: metav1.ConditionTrue, Reason: fleetv1alpha1.ReasonConnected, Message: "Connected"}}
	}
	at := key.Published()
	profile := &inventoryv1alpha1.ClusterProfile{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: at.Namespace, Name: at.Name,
			Labels:      map[string]string{inventoryv1alpha1.LabelClusterManagerKey: fleetv1alpha1.FieldManager},
			Annotations: map[string]string{fleetv1alpha1.ClusterNameAnnotation: key.String()},
		},
		Spec: inventoryv1alpha1.ClusterProfileSpec{
			DisplayName: key.Name, ClusterManager: inventoryv1alpha1.ClusterManager{Name: fleetv1alpha1.FieldManager},
		},
	}
	if err := f.hub.Create(t.Context(), profile); err != nil {
		t.Fatal(err)
	}
	for _, c := range conditions {
		c.LastTransitionTime = metav1.NewTime(now())
		profile.Status.Conditions = append(profile.Status.Conditions, c)
	}
	profile.Status.Version.Kubernetes = "v1.36.3"
	for name, value := range map[string]string{
		inventory.PropertyClusterIdentifier: key.Namespace + "-" + key.Name, inventory.PropertyEnrollmentClass: class,
	} {
		profile.Status.Properties = append(profile.Status.Properties, inventoryv1alpha1.Property{
			Name: name, Value: value, LastObservedTime: metav1.NewTime(now()),
		})
	}
	if err := f.hub.Status().Update(t.Context(), profile); err != nil {
		t.Fatal(err)
	}
}

// report creates the ApplicationReport of a cluster.
func (f *testFleet) report(t *testing.T, at types.NamespacedName, lastSeen time.Time) {
	t.Helper()
	report := &fleetv1alpha1.ApplicationReport{ObjectMeta: metav1.ObjectMeta{Namespace: at.Namespace, Name: at.Name}}
	if err := f.hub.Create(t.Context(), report); err != nil {
		t.Fatal(err)
	}
	report.Status.LastSeen = new(metav1.NewTime(lastSeen))
	if err := f.hub.Status().Update(t.Context(), report); err != nil {
		t.Fatal(err)
	}
}

// object reads an object of the workload cluster.
func (f *testFleet) object(t *testing.T, apiVersion, kind, namespace, name string) *unstructured.Unstructured {
	t.Helper()
	u := &unstructured.Unstructured{}
	u.SetAPIVersion(apiVersion)
	u.SetKind(kind)
	if err := f.workload.Get(t.Context(), types.NamespacedName{Namespace: namespace, Name: name}, u); err != nil {
		t.Fatal(err)
	}
	return u
}
