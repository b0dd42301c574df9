// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package localfleet

import (
	"context"
	"errors"
	"maps"
	"net"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/masthead-dev/masthead/pkg/condition"
	"github.com/masthead-dev/masthead/test/localfleet/function"
)

// fleetTest is one step of TestFleet.
type fleetTest struct {
	*testing.T

	fleet *Fleet
}

// TestFleet brings up a hub and a workload cluster with all components and checks each of them. The steps build on each
// other; the last takes the fleet down.
func TestFleet(t *testing.T) {
	f, err := Up(t.Context(), Options{
		Dir: t.TempDir(), Workloads: []string{"w1"}, Log: t.Output(),
		WithCrossplane: true, WithClusterAPI: true, WithKwok: true, Audit: true, StopWithParent: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	down := false
	t.Cleanup(func() {
		if !down {
			if err := f.Down(context.WithoutCancel(t.Context())); err != nil {
				t.Error(err)
			}
		}
	})
	steps := []struct {
		name string
		run  func(fleetTest)
	}{
		{"StatusIsReady", fleetTest.status},
		{"ClusterAPIProvisionsTheCluster", fleetTest.clusterAPI},
		{"SecretHoldsServiceAccountToken", fleetTest.kubeconfigSecret},
		{"ClaimGetsConnectionSecret", fleetTest.claim},
		{"FunctionFollowsOrders", fleetTest.functionOrders},
		{"CompositeComposesSecrets", fleetTest.composite},
		{"PodBecomesReady", fleetTest.pod},
		{"RightsAreEnforced", fleetTest.rbac},
		{"RequestsAreAudited", fleetTest.audit},
		{"PauseAndResume", fleetTest.pause},
		{"RotateRevokes", fleetTest.rotate},
		{"RestartOnSamePort", fleetTest.restart},
		{"RestartOnNewPort", fleetTest.restartNewPort},
		{"MoveKeepsPreviousServer", fleetTest.move},
		{"RestartHubOnNewPort", fleetTest.restartHub},
		{"AddRegisterRemove", fleetTest.addRegisterRemove},
		{"UpRefusesFleetOfRunningProcess", fleetTest.upRefuses},
	}
	for _, step := range steps {
		if !t.Run(step.name, func(t *testing.T) { step.run(fleetTest{T: t, fleet: f}) }) {
			t.FailNow()
		}
	}
	t.Run("DownLeavesNothing", func(t *testing.T) {
		down = true
		fleetTest{T: t, fleet: f}.down()
	})
}

func (t fleetTest) status() {
	f := t.fleet
	statuses, err := f.Status(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	got := map[string][]string{}
	for _, status := range statuses {
		if !status.Ready {
			t.Errorf("cluster %q is not ready: %s", status.Name, status.Reason)
		}
		for _, process := range status.Processes {
			got[status.Name] = append(got[status.Name], process.Name)
			if process.State != string(stateRunning) || process.ResidentBytes == 0 {
				t.Errorf("%s of cluster %q: want it running and using memory: %+v", process.Name, status.Name, process)
			}
		}
		slices.Sort(got[status.Name])
	}
	want := map[string][]string{
		HubName: {ClusterAPI, Crossplane, Etcd, APIServer, ControllerManager, Function},
		"w1":    {Etcd, APIServer, ControllerManager, Kwok},
	}
	for _, processes := range want {
		slices.Sort(processes)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("Status(): the processes of the fleet: -want, +got:\n%s", diff)
	}
}

func (t fleetTest) clusterAPI() {
	f := t.fleet
	hub := objectClient(t.T, f, HubName)
	eventually(t.T, "Cluster API core finds the cluster provisioned and reachable", func() bool {
		cluster := newObject(clusterKind, "default", "w1", nil)
		if err := hub.Get(t.Context(), client.ObjectKeyFromObject(cluster), cluster); err != nil {
			return false
		}
		phase, _, _ := unstructured.NestedString(cluster.Object, "status", "phase")
		initialized, _, _ := unstructured.NestedBool(cluster.Object, "status", "initialization", "controlPlaneInitialized")
		return phase == "Provisioned" && initialized && slices.Contains(cluster.GetFinalizers(), clusterv1.ClusterFinalizer) &&
			condition.IsTrue(cluster, clusterv1.ClusterRemoteConnectionProbeCondition) &&
			condition.IsTrue(cluster, clusterv1.ClusterAvailableCondition)
	})
}

func (t fleetTest) kubeconfigSecret() {
	f := t.fleet
	secret := kubeconfigSecret(t.T, f, "w1")
	if string(secret.Type) != secretType || secret.Labels[clusterv1.ClusterNameLabel] != "w1" {
		t.Errorf("want type %s and label %s=w1, got type %s and labels %v", secretType, clusterv1.ClusterNameLabel, secret.Type, secret.Labels)
	}
	config := secretConfig(t.T, secret)
	if config.Insecure || len(config.CAData) == 0 {
		t.Error("the kubeconfig must verify the server")
	}
	want := "system:serviceaccount:" + ServiceAccountNamespace + ":" + ServiceAccountName
	if got, err := whoAmI(t.Context(), config); err != nil || got != want {
		t.Errorf("want user %s, got %s, %v", want, got, err)
	}
}

func (t fleetTest) claim() {
	f := t.fleet
	if err := f.InstallSamples(t.Context()); err != nil {
		t.Fatal(err)
	}
	hub := objectClient(t.T, f, HubName)
	claim := newClaim("sqldb", nil)
	if err := hub.Create(t.Context(), claim); err != nil {
		t.Fatal(err)
	}
	secrets := clientset(t.T, f, HubName).CoreV1().Secrets("default")
	var first string
	eventually(t.T, "the claim is ready and its connection Secret complete", func() bool {
		if err := hub.Get(t.Context(), client.ObjectKeyFromObject(claim), claim); err != nil || !condition.IsTrue(claim, "Ready") {
			return false
		}
		secret, err := secrets.Get(t.Context(), "sqldb-conn", metav1.GetOptions{})
		if err != nil {
			return false
		}
		first = string(secret.Data["password"])
		keys := slices.Sorted(maps.Keys(secret.Data))
		return cmp.Equal([]string{"endpoint", "password", "username"}, keys) && metav1.IsControlledBy(secret, claim)
	})
	patch := client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"version":"8.0"}}`))
	if err := hub.Patch(t.Context(), claim, patch); err != nil {
		t.Fatal(err)
	}
	eventually(t.T, "a new version of the database rotates the password in the connection Secret", func() bool {
		secret, err := secrets.Get(t.Context(), "sqldb-conn", metav1.GetOptions{})
		return err == nil && string(secret.Data["password"]) != first
	})
}

func (t fleetTest) functionOrders() {
	f := t.fleet
	hub := objectClient(t.T, f, HubName)
	failing := newClaim("failing", map[string]string{function.AnnotationFail: "no quota left"})
	withheld := newClaim("withheld", map[string]string{function.AnnotationWithholdConnection: "true"})
	delayed := newClaim("delayed", map[string]string{function.AnnotationReadyAfter: "3s"})
	for _, claim := range []*unstructured.Unstructured{failing, withheld, delayed} {
		if err := hub.Create(t.Context(), claim); err != nil {
			t.Fatal(err)
		}
	}
	ready := func(claim *unstructured.Unstructured) bool {
		return hub.Get(t.Context(), client.ObjectKeyFromObject(claim), claim) == nil && condition.IsTrue(claim, "Ready")
	}
	eventually(t.T, "the claim whose connection details are withheld is ready", func() bool { return ready(withheld) })
	eventually(t.T, "the delayed claim is ready", func() bool { return ready(delayed) })
	if age := time.Since(delayed.GetCreationTimestamp().Time); age < 3*time.Second {
		t.Errorf("the delayed claim was ready after %s already", age)
	}
	secret, err := clientset(t.T, f, HubName).CoreV1().Secrets("default").Get(t.Context(), "withheld-conn", metav1.GetOptions{})
	if client.IgnoreNotFound(err) != nil || len(secret.Data) != 0 {
		t.Errorf("want no connection details, got %d, %v", len(secret.Data), err)
	}
	if ready(failing) {
		t.Error("the claim whose function fails is ready")
	}
}

func (t fleetTest) composite() {
	f := t.fleet
	hub := objectClient(t.T, f, HubName)
	composite := newObject(CacheKind, "default", "cache", nil)
	composite.SetAnnotations(map[string]string{function.AnnotationSecrets: "1", function.AnnotationConfigMaps: "1"})
	composite.Object["spec"] = map[string]any{"version": "7"}
	if err := hub.Create(t.Context(), composite); err != nil {
		t.Fatal(err)
	}
	core := clientset(t.T, f, HubName).CoreV1()
	eventually(t.T, "the composed Secret and ConfigMap are there", func() bool {
		_, secretErr := core.Secrets("default").Get(t.Context(), "cache-secret-0", metav1.GetOptions{})
		_, configMapErr := core.ConfigMaps("default").Get(t.Context(), "cache-configmap-0", metav1.GetOptions{})
		return secretErr == nil && configMapErr == nil
	})
}

func (t fleetTest) pod() {
	f := t.fleet
	pods := clientset(t.T, f, "w1").CoreV1().Pods("default")
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "web"},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "web", Image: "example.org/web"}}},
	}
	if _, err := pods.Create(t.Context(), pod, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t.T, "the pod is Ready", func() bool {
		pod, err := pods.Get(t.Context(), "web", metav1.GetOptions{})
		return err == nil && slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
			return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
		})
	})
}

func (t fleetTest) rbac() {
	f := t.fleet
	config, err := f.UserConfig("w1", "alice")
	if err != nil {
		t.Fatal(err)
	}
	alice, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := alice.CoreV1().Secrets("default").List(t.Context(), metav1.ListOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("a user without rights lists Secrets: want it forbidden, got %v", err)
	}
	// Each cluster has its own authority.
	config.Host = hubServer(t.T, f)
	config.CAData = getConfig(t.T, f, HubName).CAData
	hub, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := hub.CoreV1().Namespaces().List(t.Context(), metav1.ListOptions{}); !apierrors.IsUnauthorized(err) {
		t.Errorf("a user of one cluster comes to another: want it unauthorized, got %v", err)
	}
}

func (t fleetTest) audit() {
	f := t.fleet
	for _, name := range []string{HubName, "w1"} {
		eventually(t.T, "the audit log of "+name+" has content", func() bool {
			info, err := os.Stat(f.AuditLog(name))
			return err == nil && info.Size() > 0
		})
	}
}

func (t fleetTest) pause() {
	f := t.fleet
	if err := f.Pause(t.Context(), "w1"); err != nil {
		t.Fatal(err)
	}
	if err := listNamespaces(t.T, f, "w1", time.Second); !isTimeout(err) {
		t.Errorf("a request to a paused API server: want a timeout, got %v", err)
	}
	statuses, err := f.Status(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if statuses[1].Ready || statuses[1].Reason == "" {
		t.Errorf("the status of a paused cluster: want a reason why it is not ready, got %+v", statuses[1])
	}
	if err := f.Resume(t.Context(), "w1"); err != nil {
		t.Fatal(err)
	}
	if err := listNamespaces(t.T, f, "w1", time.Minute); err != nil {
		t.Errorf("a request after the API server was resumed: %v", err)
	}
}

func (t fleetTest) rotate() {
	f := t.fleet
	before := secretConfig(t.T, kubeconfigSecret(t.T, f, "w1"))
	other, err := f.NewKubeconfig(t.Context(), "w1")
	if err != nil {
		t.Fatal(err)
	}
	if err = f.Rotate(t.Context(), "w1"); err != nil {
		t.Fatal(err)
	}
	after := secretConfig(t.T, kubeconfigSecret(t.T, f, "w1"))
	if before.BearerToken == after.BearerToken {
		t.Error("Rotate(): the token is the same")
	}
	if _, err := whoAmI(t.Context(), after); err != nil {
		t.Errorf("the new token must work at once: %v", err)
	}
	// The API server found the old token valid a moment ago, and accepts it until it forgets that.
	eventually(t.T, "the old token is refused", func() bool {
		_, err := whoAmI(t.Context(), before)
		return apierrors.IsUnauthorized(err)
	})
	unrelated, err := clientcmd.RESTConfigFromKubeConfig(other)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := whoAmI(t.Context(), unrelated); err != nil {
		t.Errorf("a token that the hub does not use must still work: %v", err)
	}
}

func (t fleetTest) restart() {
	f := t.fleet
	server := getConfig(t.T, f, "w1").Host
	if err := f.Kill(t.Context(), "w1"); err != nil {
		t.Fatal(err)
	}
	if err := listNamespaces(t.T, f, "w1", 5*time.Second); err == nil {
		t.Error("a request to a killed API server was answered")
	}
	if err := f.Restart(t.Context(), "w1", RestartOptions{}); err != nil {
		t.Fatal(err)
	}
	if got := getConfig(t.T, f, "w1").Host; got != server {
		t.Errorf("Restart(): want the server at %s again, got %s", server, got)
	}
	if _, err := clientset(t.T, f, "w1").CoreV1().Pods("default").Get(t.Context(), "web", metav1.GetOptions{}); err != nil {
		t.Errorf("what was there before the restart must be there after it: %v", err)
	}
}

func (t fleetTest) restartNewPort() {
	f := t.fleet
	old := getConfig(t.T, f, "w1").Host
	if err := f.Restart(t.Context(), "w1", RestartOptions{NewPort: true}); err != nil {
		t.Fatal(err)
	}
	server := getConfig(t.T, f, "w1").Host
	if server == old {
		t.Errorf("Restart(): want another server than %s", old)
	}
	if isOpen(old) {
		t.Errorf("Restart(): a server still listens at %s", old)
	}
	checkHubLeadsTo(t.T, f, "w1", server)
	// The cluster's own controllers use the new port, too.
	namespaces := clientset(t.T, f, "w1").CoreV1().Namespaces()
	if _, err := namespaces.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "passing"}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := namespaces.Delete(t.Context(), "passing", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t.T, "the controller manager has deleted the namespace", func() bool {
		_, err := namespaces.Get(t.Context(), "passing", metav1.GetOptions{})
		return apierrors.IsNotFound(err)
	})
}

func (t fleetTest) move() {
	f := t.fleet
	old := getConfig(t.T, f, "w1")
	stopPrevious, err := f.Move(t.Context(), "w1")
	if err != nil {
		t.Fatal(err)
	}
	server := getConfig(t.T, f, "w1").Host
	checkHubLeadsTo(t.T, f, "w1", server)
	if _, err := whoAmI(t.Context(), old); err != nil {
		t.Errorf("Move(): the previous server must go on: %v", err)
	}
	if err := stopPrevious(t.Context()); err != nil {
		t.Fatal(err)
	}
	if isOpen(old.Host) {
		t.Errorf("a server still listens at %s after the previous server was stopped", old.Host)
	}
	if err := listNamespaces(t.T, f, "w1", time.Minute); err != nil {
		t.Errorf("the new server must go on: %v", err)
	}
}

func (t fleetTest) restartHub() {
	f := t.fleet
	if err := f.Restart(t.Context(), HubName, RestartOptions{NewPort: true}); err != nil {
		t.Fatal(err)
	}
	hub := objectClient(t.T, f, HubName)
	claim := newClaim("after-restart", nil)
	if err := hub.Create(t.Context(), claim); err != nil {
		t.Fatal(err)
	}
	eventually(t.T, "Crossplane serves claims after the hub moved to another port", func() bool {
		return hub.Get(t.Context(), client.ObjectKeyFromObject(claim), claim) == nil && condition.IsTrue(claim, "Ready")
	})
}

func (t fleetTest) addRegisterRemove() {
	f := t.fleet
	if err := f.Add(t.Context(), "w1"); err == nil {
		t.Error("Add(): want an error for a name that is taken")
	}
	if err := f.Add(t.Context(), "w2"); err != nil {
		t.Fatal(err)
	}
	alias := Registration{Workload: "w2", Namespace: "team-a", Name: "alias", Labels: map[string]string{"masthead.dev/enroll": "true"}}
	if err := f.Register(t.Context(), alias); err != nil {
		t.Fatal(err)
	}
	keys, err := f.registrations(t.Context(), "w2")
	if err != nil {
		t.Fatal(err)
	}
	if len(keys) != 2 {
		t.Errorf("Register(): want w2 registered twice, got %v", keys)
	}
	if err := f.Unregister(t.Context(), alias); err != nil {
		t.Fatal(err)
	}
	if err := f.Unregister(t.Context(), Registration{Workload: "w2"}); err != nil {
		t.Fatal(err)
	}
	if err := f.Register(t.Context(), Registration{Workload: "w2"}); err != nil {
		t.Fatalf("a cluster can be registered again under its old name: %v", err)
	}
	server := getConfig(t.T, f, "w2").Host
	if err := f.Remove(t.Context(), "w2"); err != nil {
		t.Fatal(err)
	}
	names, err := f.Clusters()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{HubName, "w1"}, names); diff != "" {
		t.Errorf("Remove(): -want, +got:\n%s", diff)
	}
	if isOpen(server) {
		t.Errorf("Remove(): a server still listens at %s", server)
	}
	if keys, err := f.registrations(t.Context(), "w2"); err != nil || len(keys) != 0 {
		t.Errorf("Remove(): still registered in the hub: %v, %v", keys, err)
	}
}

func (t fleetTest) upRefuses() {
	f := t.fleet
	if _, err := Up(t.Context(), Options{Dir: f.Dir()}); err == nil {
		t.Error("Up(): want an error for a folder whose fleet belongs to a running process")
	}
}

func (t fleetTest) down() {
	f := t.fleet
	var open []string
	for _, name := range []string{HubName, "w1"} {
		c, err := f.openCluster(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, port := range c.ports() {
			open = append(open, "https://"+loopback(port))
		}
	}
	// The hardest case is a process that does not react to anything.
	if err := f.Pause(t.Context(), HubName); err != nil {
		t.Fatal(err)
	}
	if err := f.Down(t.Context()); err != nil {
		t.Fatal(err)
	}
	checkNoLeftovers(t.T, f.Dir())
	for _, server := range open {
		if isOpen(server) {
			t.Errorf("Down(): a server still listens at %s", server)
		}
	}
	if _, err := os.Stat(f.Dir()); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("Down(): the folder is still there: %v", err)
	}
	if err := f.Down(t.Context()); err != nil {
		t.Errorf("Down() of a fleet that is down: %v", err)
	}
}

func checkNoLeftovers(t *testing.T, dir string) {
	t.Helper()
	if found, err := leftovers(dir); err != nil || len(found) > 0 {
		t.Errorf("processes of the fleet are left: %v, %v", found, err)
	}
}

// checkHubLeadsTo checks that the hub's Secret and Cluster lead to the server.
func checkHubLeadsTo(t *testing.T, f *Fleet, name, server string) {
	t.Helper()
	config := secretConfig(t, kubeconfigSecret(t, f, name))
	if config.Host != server {
		t.Errorf("the kubeconfig Secret leads to %s, not to %s", config.Host, server)
	}
	if _, err := whoAmI(t.Context(), config); err != nil {
		t.Errorf("the credentials in the hub must work on: %v", err)
	}
	cluster := newObject(clusterKind, "default", name, nil)
	if err := objectClient(t, f, HubName).Get(t.Context(), client.ObjectKeyFromObject(cluster), cluster); err != nil {
		t.Fatal(err)
	}
	port, _, _ := unstructured.NestedInt64(cluster.Object, "spec", "controlPlaneEndpoint", "port")
	if apiServerURL(int(port)) != server {
		t.Errorf("the Cluster leads to port %d, not to %s", port, server)
	}
}

func newClaim(name string, annotations map[string]string) *unstructured.Unstructured {
	claim := newObject(MySQLClaimKind, "default", name, nil)
	claim.SetAnnotations(annotations)
	claim.Object["spec"] = map[string]any{
		"version": "5.7", "storageGB": int64(20), "writeConnectionSecretToRef": map[string]any{"name": name + "-conn"},
	}
	return claim
}

func getConfig(t *testing.T, f *Fleet, name string) *rest.Config {
	t.Helper()
	config, err := f.Config(name)
	if err != nil {
		t.Fatal(err)
	}
	return config
}

func hubServer(t *testing.T, f *Fleet) string {
	t.Helper()
	return getConfig(t, f, HubName).Host
}

func objectClient(t *testing.T, f *Fleet, name string) client.Client {
	t.Helper()
	c, err := newClient(getConfig(t, f, name))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func clientset(t *testing.T, f *Fleet, name string) kubernetes.Interface {
	t.Helper()
	c, err := kubernetes.NewForConfig(getConfig(t, f, name))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func kubeconfigSecret(t *testing.T, f *Fleet, name string) *corev1.Secret {
	t.Helper()
	secret, err := clientset(t, f, HubName).CoreV1().Secrets("default").Get(t.Context(), name+"-kubeconfig", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return secret
}

func secretConfig(t *testing.T, secret *corev1.Secret) *rest.Config {
	t.Helper()
	config, err := clientcmd.RESTConfigFromKubeConfig(secret.Data[secretKey])
	if err != nil {
		t.Fatal(err)
	}
	return config
}

// whoAmI returns the name of the user that the API server takes the caller for.
func whoAmI(ctx context.Context, config *rest.Config) (string, error) {
	c, err := kubernetes.NewForConfig(config)
	if err != nil {
		return "", err
	}
	review, err := c.AuthenticationV1().SelfSubjectReviews().Create(ctx, &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	if err != nil {
		return "", err
	}
	return review.Status.UserInfo.Username, nil
}

func listNamespaces(t *testing.T, f *Fleet, name string, limit time.Duration) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	_, err := clientset(t, f, name).CoreV1().Namespaces().List(ctx, metav1.ListOptions{})
	return err
}

func isTimeout(err error) bool {
	var netErr net.Error
	return errors.Is(err, context.DeadlineExceeded) || (errors.As(err, &netErr) && netErr.Timeout())
}

// isOpen reports whether a process listens at the address of a URL.
func isOpen(server string) bool {
	connection, err := net.DialTimeout("tcp", server[len("https://"):], time.Second)
	if err != nil {
		return false
	}
	_ = connection.Close()
	return true
}
