// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	clientcmdv1 "k8s.io/client-go/tools/clientcmd/api/v1"
	inventoryv1alpha1 "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/internal/test/testenv"
	"github.com/masthead-dev/masthead/pkg/providers/clusterprofile"
)

// output is a buffer that the manager writes while the test reads.
type output struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.String()
}

// TestManagerAgainstAHub starts the manager as the ServiceAccount of config/rbac on an empty hub, and then adds one
// thing after the other to the hub.
func TestManagerAgainstAHub(t *testing.T) {
	env, err := testenv.New()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = env.Stop() }) // Also stops what a failed start has left running.
	admin, err := testenv.Start(env)
	if err != nil {
		t.Fatalf("cannot start the API server: %v", err)
	}
	scheme, err := hubScheme()
	if err != nil {
		t.Fatal(err)
	}
	hub, err := client.New(admin, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}

	health, metrics := freeAddress(t), freeAddress(t)
	var log output
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	exited := make(chan int, 1)
	go func() {
		exited <- run(ctx, []string{
			"--kubeconfig", newKubeconfig(t, env, envtest.User{
				Name:   "system:serviceaccount:" + defaultNamespace + ":masthead",
				Groups: []string{"system:serviceaccounts", "system:serviceaccounts:" + defaultNamespace},
			}), "--leader-elect", "--sources=capi,kubeconfig,clusterprofile", "--allow-loopback-endpoints",
			"--health-bind-address", health, "--metrics-bind-address", metrics,
		}, noEnv, io.Discard, &log)
	}()

	awaitReadyz(t, health, http.StatusServiceUnavailable, "the CRD enrollmentclasses.fleet.masthead.dev", "the CRD clusterprofiles",
		"the CRD clusters.cluster.x-k8s.io", "the right to list, watch secrets", installOurCRDs, installRights)
	if code, _ := get(t, "http://"+health+"/healthz"); code != http.StatusOK {
		t.Errorf("A manager that waits is alive: want 200, got %d", code)
	}

	applyAll(t, hub, "config/rbac")
	if got := awaitReadyz(t, health, http.StatusServiceUnavailable, "the CRD clusters.cluster.x-k8s.io"); strings.Contains(got, "right") {
		awaitNot(t, health, "the right")
	}
	acceptsTheDeployment(t, hub)
	answersOnlyTheAuthorised(t, hub, metrics, "masthead_ready 0")
	changesTheLogLevel(t, hub, metrics)
	installCRDs(t, env)
	awaitReadyz(t, health, http.StatusOK, "ok")
	saysOnceWhatIsMissing(t, log.String())

	// With these rights and no others, the manager publishes an enrolled cluster, and reports why it is not connected.
	publishesAnEnrolledSecret(t, hub)
	publishesAnEnrolledClusterProfile(t, hub)
	letsOthersReachAnEnrolledCluster(t, env, hub)
	importsNothing(t, hub)
	if code, body := get(t, "https://"+metrics+"/metrics", newToken(t, hub, "prometheus")); code != http.StatusOK ||
		!strings.Contains(body, "masthead_ready 1") || !strings.Contains(body, "masthead_cluster_connected{") {
		t.Errorf("Metrics of a manager that works: want 200 and a cluster, got %d and\n%s", code, body)
	}

	cancel()
	if code := <-exited; code != 0 {
		t.Errorf("A manager that stops on a signal has not failed: want 0, got %d\n%s", code, log.String())
	}
	var lease coordinationv1.Lease
	if err := hub.Get(t.Context(), client.ObjectKey{Namespace: defaultNamespace, Name: leaseName}, &lease); err != nil {
		t.Fatal(err)
	}
	if holder := lease.Spec.HolderIdentity; holder != nil && *holder != "" {
		t.Errorf("A leader that stops gives the lease back: it is still held by %q", *holder)
	}
	if strings.Contains(log.String(), "is forbidden") {
		t.Errorf("The manager requested something that config/rbac does not grant:\n%s", log.String())
	}
}

// saysOnceWhatIsMissing checks what the preflight has logged until its end. The number of lines depends on when it
// checked: it may have checked while only a part of config/rbac was installed, and then has to report that the hub
// lacks less now.
func saysOnceWhatIsMissing(t *testing.T, log string) {
	t.Helper()
	const missing, complete = "the right to list, watch secrets", "The hub has everything that Masthead requires"
	if got := strings.Count(log, complete); got != 1 {
		t.Errorf("That nothing is missing any more is logged once: want %q once, got %d in\n%s", complete, got, log)
	}
	last, reported := "", false
	for line := range strings.Lines(log) {
		var entry struct {
			Message string `json:"msg"`
		}
		if json.Unmarshal([]byte(line), &entry) != nil {
			continue // It is a line of a library, and none of ours.
		}
		says := entry.Message
		if !strings.HasPrefix(says, "the hub lacks") && !strings.HasPrefix(says, "cannot query the hub") {
			continue
		}
		reported = reported || strings.Contains(says, missing)
		if says == last {
			t.Errorf("What is missing is logged when it changes, and not again and again: %q in\n%s", says, log)
		}
		last = says
	}
	if !reported {
		t.Errorf("What is missing is logged: want %q in\n%s", missing, log)
	}
}

// acceptsTheDeployment creates the objects in config/manager, and a Pod of the Deployment as its controllers would: the
// namespace enforces the Pod Security Standard "restricted".
func acceptsTheDeployment(t *testing.T, hub client.Client) {
	t.Helper()
	applyAll(t, hub, "config/manager")
	var deployment appsv1.Deployment
	if err := hub.Get(t.Context(), client.ObjectKey{Namespace: defaultNamespace, Name: "masthead"}, &deployment); err != nil {
		t.Fatal(err)
	}
	template := deployment.Spec.Template
	template.Namespace, template.Name = defaultNamespace, "masthead"
	pod := &corev1.Pod{ObjectMeta: template.ObjectMeta, Spec: template.Spec}
	if err := hub.Create(t.Context(), pod, client.DryRunAll); err != nil {
		t.Errorf("The Pod of config/manager must be allowed in its own namespace: %v", err)
	}
	in, err := parse(template.Spec.Containers[0].Args, func(string) string { return defaultNamespace }, io.Discard)
	if err != nil {
		t.Fatalf("The arguments in config/manager must be flags of the manager: %v", err)
	}
	grace := time.Duration(*template.Spec.TerminationGracePeriodSeconds) * time.Second
	if o := in.Options; grace <= o.GracefulShutdownTimeout.Duration {
		t.Errorf("The Pod is killed after %s, before the manager gives up waiting after %s", grace, o.GracefulShutdownTimeout.Duration)
	}
}

func publishesAnEnrolledSecret(t *testing.T, hub client.Client) {
	t.Helper()
	for _, o := range []client.Object{
		&fleetv1alpha1.EnrollmentClass{
			ObjectMeta: metav1.ObjectMeta{Name: fleetv1alpha1.DefaultEnrollmentClassName},
			Spec: fleetv1alpha1.EnrollmentClassSpec{
				AllowedNamespaces: &fleetv1alpha1.AllowedNamespaces{List: []string{"default"}},
				Agent:             fleetv1alpha1.AgentSpec{DefaultTargetNamespace: "default"},
			},
		},
		&corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: "default", Name: "w1",
				Labels: map[string]string{fleetv1alpha1.EnrollLabel: fleetv1alpha1.EnrollLabelTrue},
			},
			StringData: map[string]string{"kubeconfig": "not a kubeconfig"},
		},
	} {
		if err := hub.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, "the ClusterProfile of the enrolled Secret", func() bool {
		var p inventoryv1alpha1.ClusterProfile
		if err := hub.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: "kubeconfig-w1"}, &p); err != nil {
			return false
		}
		c := meta.FindStatusCondition(p.Status.Conditions, "Connected")
		return c != nil && c.Status == metav1.ConditionFalse && c.Reason == "BadKubeconfig"
	})
	eventually(t, "the cluster in the status of its class", func() bool {
		var class fleetv1alpha1.EnrollmentClass
		key := client.ObjectKey{Name: fleetv1alpha1.DefaultEnrollmentClassName}
		return hub.Get(t.Context(), key, &class) == nil && class.Status.EnrolledClusters == 1
	})
}

// publishesAnEnrolledClusterProfile enrols the ClusterProfile of another cluster manager, which stays as it is, and one
// of Masthead's own, which enrols nothing.
func publishesAnEnrolledClusterProfile(t *testing.T, hub client.Client) {
	t.Helper()
	theirs := &inventoryv1alpha1.ClusterProfile{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "default", Name: "w2", Labels: map[string]string{fleetv1alpha1.EnrollLabel: fleetv1alpha1.EnrollLabelTrue},
		},
		Spec: inventoryv1alpha1.ClusterProfileSpec{ClusterManager: inventoryv1alpha1.ClusterManager{Name: "other"}},
	}
	if err := hub.Create(t.Context(), theirs); err != nil {
		t.Fatal(err)
	}
	provider := inventoryv1alpha1.AccessProvider{Name: "secretreader"}
	provider.Cluster.Server = "https://169.254.169.254"
	provider.Cluster.Extensions = []clientcmdv1.NamedExtension{{
		Name: "client.authentication.k8s.io/exec", Extension: runtime.RawExtension{Raw: []byte(`{"clusterName":"w2-token"}`)},
	}}
	theirs.Status.AccessProviders = []inventoryv1alpha1.AccessProvider{provider}
	if err := hub.Status().Update(t.Context(), theirs); err != nil {
		t.Fatal(err)
	}
	err := hub.Create(t.Context(), &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "w2-token", Labels: map[string]string{clusterprofile.ProfileLabel: "w2"}},
		StringData: map[string]string{"token": "t"},
	})
	if err != nil {
		t.Fatal(err)
	}
	ours := &inventoryv1alpha1.ClusterProfile{}
	eventually(t, "the ClusterProfile of the enrolled ClusterProfile", func() bool {
		if hub.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: "clusterprofile-w2"}, ours) != nil {
			return false
		}
		c := meta.FindStatusCondition(ours.Status.Conditions, "Connected")
		return c != nil && c.Reason == "BadKubeconfig" && strings.Contains(c.Message, "link-local")
	})
	base := ours.DeepCopy()
	ours.Labels[fleetv1alpha1.EnrollLabel] = fleetv1alpha1.EnrollLabelTrue
	if err := hub.Patch(t.Context(), ours, client.MergeFrom(base)); err != nil {
		t.Fatal(err)
	}
	// Deleting the enrolled profile comes after the label: once its effect is there, the label's would be.
	version := theirs.ResourceVersion
	if err := hub.Get(t.Context(), client.ObjectKeyFromObject(theirs), theirs); err != nil || theirs.ResourceVersion != version {
		t.Errorf("The other cluster manager's profile is only read: want version %s, got %s, %v", version, theirs.ResourceVersion, err)
	}
	if err := hub.Delete(t.Context(), theirs); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the end of the ClusterProfile", func() bool {
		return apierrors.IsNotFound(hub.Get(t.Context(), client.ObjectKeyFromObject(ours), ours))
	})
	profiles := &inventoryv1alpha1.ClusterProfileList{}
	if err := hub.List(t.Context(), profiles); err != nil || len(profiles.Items) != 1 {
		t.Errorf("Masthead's own ClusterProfile enrols nothing: want that of the Secret alone, got %v, %v", profiles.Items, err)
	}
}

// importsNothing creates a ClusterImport where config/imports was not applied. It gets a condition, and nothing else.
func importsNothing(t *testing.T, hub client.Client) {
	t.Helper()
	imp := &fleetv1alpha1.ClusterImport{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "shop"},
		Spec: fleetv1alpha1.ClusterImportSpec{
			EKS:               &fleetv1alpha1.EKSImport{Region: "eu-central-1", ClusterName: "prod"},
			ProviderConfigRef: fleetv1alpha1.ProviderConfigReference{Name: "customer"},
		},
	}
	if err := hub.Create(t.Context(), imp); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the rights that the import lacks", func() bool {
		if hub.Get(t.Context(), client.ObjectKeyFromObject(imp), imp) != nil {
			return false
		}
		c := meta.FindStatusCondition(imp.Status.Conditions, fleetv1alpha1.ConditionReady)
		return c != nil && c.Reason == fleetv1alpha1.ReasonRightsMissing && strings.Contains(c.Message, "config/imports")
	})
	if len(imp.Finalizers) > 0 {
		t.Errorf("Without rights nothing is begun: the import has %v", imp.Finalizers)
	}
	var secrets corev1.SecretList
	if err := hub.List(t.Context(), &secrets, client.HasLabels{fleetv1alpha1.ImportUIDLabel}); err != nil || len(secrets.Items) > 0 {
		t.Errorf("Without rights nothing is created: got %d Secrets, %v", len(secrets.Items), err)
	}
	if err := hub.Delete(t.Context(), imp); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the end of the import", func() bool {
		return apierrors.IsNotFound(hub.Get(t.Context(), client.ObjectKeyFromObject(imp), imp))
	})
}

// answersOnlyTheAuthorised reads the metrics of a manager with and without the right to read them. With the right, they
// contain something.
func answersOnlyTheAuthorised(t *testing.T, hub client.Client, address, something string) {
	t.Helper()
	url := "https://" + address + "/metrics"
	if code, _ := get(t, url); code != http.StatusUnauthorized {
		t.Errorf("Metrics without a token: want 401, got %d", code)
	}
	if code, _ := get(t, url, newToken(t, hub, "without-rights")); code != http.StatusForbidden {
		t.Errorf("Metrics with a token whose owner may not read them: want 403, got %d", code)
	}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "prometheus"},
		RoleRef: rbacv1.RoleRef{
			APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "masthead-metrics-reader",
		},
		Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: "default", Name: "prometheus"}},
	}
	if err := hub.Create(t.Context(), binding); err != nil {
		t.Fatal(err)
	}
	awaitMetricsReader(t, hub, "prometheus")
	if code, body := get(t, url, newToken(t, hub, "prometheus")); code != http.StatusOK || !strings.Contains(body, something) {
		t.Errorf("Metrics with a token whose owner may read them: want 200 and our metrics, got %d and\n%s", code, body)
	}
}

// changesTheLogLevel checks that the right to read metrics does not include changing the log level.
func changesTheLogLevel(t *testing.T, hub client.Client, address string) {
	t.Helper()
	put := func(account, level string) (int, string) {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPut, "https://"+address+logLevelPath, strings.NewReader(level))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+newToken(t, hub, account))
		return do(t, req)
	}
	if code, body := put("prometheus", "debug"); code != http.StatusForbidden {
		t.Errorf("The log level, by a ServiceAccount that may only read metrics: want 403, got %d, %s", code, body)
	}
	role := &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: "masthead-log-level"},
		Rules:      []rbacv1.PolicyRule{{NonResourceURLs: []string{logLevelPath}, Verbs: []string{"get", "put"}}},
	}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "masthead-log-level"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name},
		Subjects:   []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: "default", Name: "operator"}},
	}
	for _, o := range []client.Object{role, binding} {
		if err := hub.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	awaitRight(t, hub, "operator", logLevelPath, "put")
	for _, level := range []string{"debug", "info"} {
		if code, body := put("operator", level); code != http.StatusOK || body != level+"\n" {
			t.Errorf("The log level, by a ServiceAccount that may change it: want 200 and the level, got %d, %q", code, body)
		}
	}
}

// awaitMetricsReader waits until the hub knows that a ServiceAccount may read metrics. The hub learns of a binding a
// moment after it is created, and the manager remembers a refusal for half a minute.
func awaitMetricsReader(t *testing.T, hub client.Client, account string) {
	t.Helper()
	awaitRight(t, hub, account, "/metrics", "get")
}

func awaitRight(t *testing.T, hub client.Client, account, path, verb string) {
	t.Helper()
	eventually(t, "the right of "+account+" to "+verb+" "+path, func() bool {
		review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
			User:                  "system:serviceaccount:default:" + account,
			NonResourceAttributes: &authorizationv1.NonResourceAttributes{Path: path, Verb: verb},
		}}
		return hub.Create(t.Context(), review) == nil && review.Status.Allowed
	})
}

func newToken(t *testing.T, hub client.Client, name string) string {
	t.Helper()
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}
	if err := hub.Create(t.Context(), account); client.IgnoreAlreadyExists(err) != nil {
		t.Fatal(err)
	}
	token := &authenticationv1.TokenRequest{}
	if err := hub.SubResource("token").Create(t.Context(), account, token); err != nil {
		t.Fatal(err)
	}
	return token.Status.Token
}

func newKubeconfig(t *testing.T, env *envtest.Environment, as envtest.User) string {
	t.Helper()
	user, err := env.AddUser(as, nil)
	if err != nil {
		t.Fatal(err)
	}
	data, err := user.KubeConfig()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "hub.kubeconfig")
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func applyAll(t *testing.T, hub client.Client, folder string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(testenv.Root(), folder, "*.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var namespaced []*unstructured.Unstructured
	for _, file := range files {
		for _, u := range manifests(t, file) {
			if u.GetKind() == "Kustomization" {
				continue
			}
			if u.GetNamespace() != "" {
				namespaced = append(namespaced, u)
				continue
			}
			if err := hub.Create(t.Context(), u); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, u := range namespaced {
		if err := hub.Create(t.Context(), u); err != nil {
			t.Fatal(err)
		}
	}
}

func installCRDs(t *testing.T, env *envtest.Environment) {
	t.Helper()
	profiles, err := testenv.ModuleCRDs(t.Context(), "sigs.k8s.io/cluster-inventory-api", "config/crd/bases")
	if err != nil {
		t.Fatal(err)
	}
	capi, err := testenv.ClusterAPICRDs(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	_, err = envtest.InstallCRDs(env.Config, envtest.CRDInstallOptions{
		Paths: []string{
			testenv.CRDs(),
			filepath.Join(profiles, "multicluster.x-k8s.io_clusterprofiles.yaml"),
			filepath.Join(capi, "cluster.x-k8s.io_clusters.yaml"),
		},
		ErrorIfPathMissing: true,
		MaxTime:            2 * time.Minute, // envtest's 10 seconds are for an idle machine.
	})
	if err != nil {
		t.Fatal(err)
	}
}

func manifests(t *testing.T, file string) []*unstructured.Unstructured {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	var list []*unstructured.Unstructured
	decoder := utilyaml.NewYAMLOrJSONDecoder(f, 4096)
	for {
		u := &unstructured.Unstructured{}
		if err := decoder.Decode(u); errors.Is(err, io.EOF) {
			return list
		} else if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		if len(u.Object) > 0 {
			list = append(list, u)
		}
	}
}

func roles(t *testing.T, file string) []rbacv1.ClusterRole {
	t.Helper()
	var list []rbacv1.ClusterRole
	for _, u := range manifests(t, file) {
		if kind := u.GetKind(); kind != "ClusterRole" && kind != "Role" {
			continue
		}
		data, err := u.MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		var role rbacv1.ClusterRole
		if err := utilyaml.Unmarshal(data, &role); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		list = append(list, role)
	}
	return list
}

func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	return l.Addr().String()
}

func get(t *testing.T, url string, token ...string) (int, string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, t := range token {
		request.Header.Set("Authorization", "Bearer "+t)
	}
	return do(t, request)
}

// do sends a request to an endpoint with a self-signed certificate.
func do(t *testing.T, request *http.Request) (int, string) {
	t.Helper()
	insecure := &http.Client{
		Timeout:   10 * time.Second,
		Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true},
	}
	response, err := insecure.Do(request)
	if err != nil {
		return 0, err.Error()
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return 0, err.Error()
	}
	return response.StatusCode, string(body)
}

func awaitReadyz(t *testing.T, address string, wantCode int, want ...string) string {
	t.Helper()
	var last string
	eventually(t, "an answer of /readyz with "+strings.Join(want, ", "), func() bool {
		var code int
		code, last = get(t, "http://"+address+"/readyz")
		for _, w := range want {
			if !strings.Contains(last, w) {
				return false
			}
		}
		return code == wantCode
	})
	return last
}

func awaitNot(t *testing.T, address, unwanted string) {
	t.Helper()
	eventually(t, "an answer of /readyz without "+unwanted, func() bool {
		code, body := get(t, "http://"+address+"/readyz")
		return code != 0 && !strings.Contains(body, unwanted)
	})
}

func eventually(t *testing.T, what string, met func() bool) {
	t.Helper()
	err := testenv.Poll(t.Context(), testenv.Patience,
		func(context.Context) (bool, error) { return met(), nil })
	if err != nil {
		t.Fatalf("Not seen within a minute: %s", what)
	}
}
