// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package charts

import (
	"context"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/internal/test/testenv"
)

// values are values that every version of the chart accepts.
const values = `
default-target-namespace: bar
apiGroups: [{group: database.acmeco.org, resources: [mysqlinstancerequirements]}]
enrollmentClass: {allowedNamespaces: {list: [default]}}
`

// hub is an API server without any objects of Masthead.
type hub struct {
	client.Client
	helm
	config *rest.Config
}

func startHub(t *testing.T) hub {
	t.Helper()
	env, err := testenv.New()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = env.Stop() }) // Also stops what a failed start has left.
	config, err := testenv.Start(env)
	if err != nil {
		t.Fatalf("cannot start the API server: %v", err)
	}
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, apiextensionsv1.AddToScheme, fleetv1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	c, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	admin, err := env.AddUser(envtest.User{Name: "admin", Groups: []string{"system:masters"}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	kubeconfig, err := admin.KubeConfig()
	if err != nil {
		t.Fatal(err)
	}
	return hub{Client: c, helm: newHelm(t, write(t, string(kubeconfig))), config: config}
}

// TestInstalledUpgradedRemoved installs, upgrades and removes the charts on one API server, twice: from a version that
// lacks a field of a definition and a right, which is made from this version, and from the version before this one in
// git.
func TestInstalledUpgradedRemoved(t *testing.T) {
	h := startHub(t)
	for _, name := range []string{namespace, "bar"} {
		if err := h.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}); err != nil {
			t.Fatal(err)
		}
	}
	h.hasItsService(t)
	before := h.everything(t)

	t.Run("FromAnOlderVersion", func(t *testing.T) {
		h.install(t, older(t))
		if field := h.definition(t); field {
			t.Fatal("the older version was to lack a field of EnrollmentClasses")
		}
		h.upgrade(t)
		if !h.definition(t) {
			t.Error("an upgrade of masthead-crds brings new fields of definitions: EnrollmentClass has no maxClusters")
		}
		h.grants(t)
		h.changesNothingAgain(t)
		h.keepsPeoplesObjects(t)
		h.uninstall(t)
		h.hasNoMoreThan(t, before)
	})
	t.Run("FromTheVersionBefore", func(t *testing.T) {
		version, charts := previous(t)
		if charts == "" {
			t.Log("git knows no version before this one; the test above has made one")
			charts = testenv.Root() + "/charts"
		}
		t.Logf("from %s", version)
		h.install(t, charts)
		h.upgrade(t)
		h.grants(t)
		h.keepsPeoplesObjects(t)
		h.uninstall(t)
		h.hasNoMoreThan(t, before)
	})
	t.Run("DefinitionsCanStay", func(t *testing.T) {
		h.must(t, "install", "masthead-crds", "charts/masthead-crds", "--namespace", namespace, "--set", "keep=true")
		h.must(t, "uninstall", "masthead-crds", "--namespace", namespace)
		if !h.definition(t) {
			t.Error("keep leaves the definitions where they are")
		}
		// They are taken over, with their objects, and can be removed then.
		h.must(t, "install", "masthead-crds", "charts/masthead-crds", "--namespace", namespace, "--take-ownership")
		h.must(t, "uninstall", "masthead-crds", "--namespace", namespace)
		h.hasNoMoreThan(t, before)
	})
	t.Run("WorkloadCluster", func(t *testing.T) {
		args := []string{"--namespace", namespace, "--set-json", "apiGroups=" + sampleGroup, "--set", "healthChecks=true,componentsPolicy=true"}
		h.must(t, append([]string{"install", "masthead", "charts/masthead-workload"}, args...)...)
		var rights rbacv1.ClusterRole
		if err := h.Get(t.Context(), client.ObjectKey{Name: "masthead-workload-requirements-database.acmeco.org"}, &rights); err != nil {
			t.Error(err)
		}
		h.must(t, append([]string{"upgrade", "masthead", "charts/masthead-workload"}, args...)...)
		h.must(t, "uninstall", "masthead", "--namespace", namespace)
		h.hasNoMoreThan(t, before)
	})
}

// install installs the charts in a folder.
func (h hub) install(t *testing.T, charts string) {
	t.Helper()
	h.must(t, "install", "masthead-crds", filepath.Join(charts, "masthead-crds"), "--namespace", namespace)
	h.must(t, "install", "masthead", filepath.Join(charts, "masthead"), "--namespace", namespace, "--values", write(t, values))
	var class fleetv1alpha1.EnrollmentClass
	if err := h.Get(t.Context(), client.ObjectKey{Name: "default"}, &class); err != nil {
		t.Fatalf("the class that the values describe is there at once: %v", err)
	}
	if got := class.Spec.Agent.DefaultTargetNamespace; got != "bar" {
		t.Errorf("claims go to %q, want bar", got)
	}
}

// upgrade upgrades to the charts of this repository.
func (h hub) upgrade(t *testing.T) {
	t.Helper()
	own := &fleetv1alpha1.EnrollmentClass{ObjectMeta: metav1.ObjectMeta{Name: "own"}}
	own.Spec.Agent.MatchNamespaces = true
	if err := h.Create(t.Context(), own); err != nil {
		t.Fatal(err)
	}
	h.must(t, "upgrade", "masthead-crds", "charts/masthead-crds", "--namespace", namespace)
	h.must(t, "upgrade", "masthead", "charts/masthead", "--namespace", namespace, "--values", write(t, values))
}

// definition is whether the API server's definition of EnrollmentClasses has the field that the older version lacks.
func (h hub) definition(t *testing.T) bool {
	t.Helper()
	var crd apiextensionsv1.CustomResourceDefinition
	if err := h.Get(t.Context(), client.ObjectKey{Name: "enrollmentclasses.fleet.masthead.dev"}, &crd); err != nil {
		t.Fatal(err)
	}
	_, ok := crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"].Properties["maxClusters"]
	return ok
}

// grants checks that the API server has the manager's rights as this version has them.
func (h hub) grants(t *testing.T) {
	t.Helper()
	for name, want := range newHelm(t, "").template(t, "masthead", "--values", write(t, values)) {
		if !strings.Contains(name, " ClusterRole ") || want["aggregationRule"] != nil {
			continue
		}
		var have rbacv1.ClusterRole
		if err := h.Get(t.Context(), client.ObjectKey{Name: name[strings.LastIndex(name, "/")+1:]}, &have); err != nil {
			t.Fatal(err)
		}
		var role rbacv1.ClusterRole
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(want, &role); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(role.Rules, have.Rules); diff != "" {
			t.Errorf("%s -chart, +hub:\n%s", name, diff)
		}
	}
}

// changesNothingAgain upgrades once more: objects that are already as they should be are not written.
func (h hub) changesNothingAgain(t *testing.T) {
	t.Helper()
	versions := h.everything(t)
	h.must(t, "upgrade", "masthead-crds", "charts/masthead-crds", "--namespace", namespace)
	h.must(t, "upgrade", "masthead", "charts/masthead", "--namespace", namespace, "--values", write(t, values))
	again := h.everything(t)
	for name, version := range versions {
		if again[name] != version && !strings.Contains(name, "sh.helm.release") {
			t.Errorf("an upgrade to the same version changed %s", name)
		}
	}
}

// keepsPeoplesObjects checks that an object that a user created between installation and upgrade still exists, and
// deletes it.
func (h hub) keepsPeoplesObjects(t *testing.T) {
	t.Helper()
	own := &fleetv1alpha1.EnrollmentClass{ObjectMeta: metav1.ObjectMeta{Name: "own"}}
	if err := h.Delete(t.Context(), own); err != nil {
		t.Errorf("an upgrade of the definitions keeps their objects: %v", err)
	}
}

func (h hub) uninstall(t *testing.T) {
	t.Helper()
	h.must(t, "uninstall", "masthead", "--namespace", namespace)
	var class fleetv1alpha1.EnrollmentClass
	if err := h.Get(t.Context(), client.ObjectKey{Name: "default"}, &class); !apierrors.IsNotFound(err) {
		t.Errorf("what the chart made goes with it: want the class not found, got %v", err)
	}
	h.must(t, "uninstall", "masthead-crds", "--namespace", namespace)
}

// hasItsService waits for the Service that an API server creates for itself, at some time after it is ready.
func (h hub) hasItsService(t *testing.T) {
	t.Helper()
	err := testenv.Poll(t.Context(), testenv.Patience, func(ctx context.Context) (bool, error) {
		err := h.Get(ctx, client.ObjectKey{Namespace: metav1.NamespaceDefault, Name: "kubernetes"}, &corev1.Service{})
		return err == nil, client.IgnoreNotFound(err)
	})
	if err != nil {
		t.Fatalf("the API server has no Service kubernetes: %v", err)
	}
}

// hasNoMoreThan waits until the API server has no objects that it did not have before.
func (h hub) hasNoMoreThan(t *testing.T, before map[string]string) {
	t.Helper()
	var left []string
	err := testenv.Poll(t.Context(), testenv.Patience, func(context.Context) (bool, error) {
		now := h.everything(t)
		maps.DeleteFunc(now, func(name, _ string) bool { return before[name] != "" })
		left = slices.Sorted(maps.Keys(now))
		return len(left) == 0, testenv.ReleaseDefinitions(t.Context(), h)
	})
	if err != nil {
		t.Errorf("left: %s (%v)\n%s", strings.Join(left, ", "), err, h.definitions(t))
	}
}

// definitions is what the API server reports about each definition that it has: why one still exists.
func (h hub) definitions(t *testing.T) string {
	t.Helper()
	var list apiextensionsv1.CustomResourceDefinitionList
	if err := h.List(t.Context(), &list); err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, crd := range list.Items {
		lines = append(lines, fmt.Sprintf("%s, deleted %v, finalizers %v, conditions %+v", crd.Name, crd.DeletionTimestamp, crd.Finalizers, crd.Status.Conditions))
	}
	return strings.Join(lines, "\n")
}

// everything is the resource version of every object of the API server, except those that API servers write for
// themselves.
func (h hub) everything(t *testing.T) map[string]string {
	t.Helper()
	served, err := discovery.NewDiscoveryClientForConfig(h.config)
	if err != nil {
		t.Fatal(err)
	}
	// A kind that is being removed is not listed.
	lists, err := served.ServerPreferredResources()
	if err != nil && !discovery.IsGroupDiscoveryFailedError(err) {
		t.Fatal(err)
	}
	reader, err := metadata.NewForConfig(h.config)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for _, resources := range discovery.FilteredBy(discovery.SupportsAllVerbs{Verbs: []string{"list", "delete"}}, lists) {
		for _, resource := range resources.APIResources {
			if slices.Contains([]string{"events", "leases", "endpoints", "endpointslices"}, resource.Name) {
				continue
			}
			gv, err := schema.ParseGroupVersion(resources.GroupVersion)
			if err != nil {
				t.Fatal(err)
			}
			list, err := reader.Resource(gv.WithResource(resource.Name)).List(t.Context(), metav1.ListOptions{})
			if apierrors.IsNotFound(err) {
				continue
			}
			if err != nil {
				t.Fatal(err)
			}
			for _, item := range list.Items {
				all[fmt.Sprintf("%s %s/%s", resource.Name, item.Namespace, item.Name)] = item.ResourceVersion
			}
		}
	}
	return all
}

// older is this version without a field of EnrollmentClasses, and without a right that it grants.
func older(t *testing.T) string {
	t.Helper()
	folder := filepath.Join(t.TempDir(), "charts")
	if err := os.CopyFS(folder, os.DirFS(filepath.Join(testenv.Root(), "charts"))); err != nil {
		t.Fatal(err)
	}
	for file, change := range map[string][2]string{
		"masthead-crds/manifests/bases/fleet.masthead.dev_enrollmentclasses.yaml": {"\n              maxClusters:\n", "\n              maximumClusters:\n"},
		"masthead/manifests/rbac/role.yaml":                                       {"verbs: [list, watch, create, patch, delete]", "verbs: [list, watch]"},
	} {
		path := filepath.Join(folder, filepath.FromSlash(file))
		data, err := os.ReadFile(filepath.Clean(path))
		if err != nil {
			t.Fatal(err)
		}
		text := strings.Replace(string(data), change[0], change[1], 1)
		if text == string(data) {
			t.Fatalf("%s does not contain %q", file, change[0])
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return folder
}

// previous returns the charts of the last tag, or else of the last commit before the one that changed them last, and
// its name. It returns "" if git has none.
func previous(t *testing.T) (version, folder string) {
	t.Helper()
	for _, list := range [][]string{{"tag", "--merged", "HEAD", "--sort=-version:refname"}, {"log", "--format=%H", "--skip=1", "--max-count=1", "--", "charts"}} {
		for version := range strings.FieldsSeq(git(t, list...)) {
			if git(t, "ls-tree", "--name-only", version, "charts/masthead-crds/Chart.yaml") == "" {
				continue
			}
			folder := t.TempDir()
			archive := filepath.Join(folder, "charts.tar")
			if err := os.WriteFile(archive, []byte(git(t, "archive", version, "charts")), 0o600); err != nil {
				t.Fatal(err)
			}
			tar := exec.CommandContext(t.Context(), "tar", "--extract", "--file", archive, "--directory", folder)
			if out, err := tar.CombinedOutput(); err != nil {
				t.Fatalf("tar: %v: %s", err, out)
			}
			return version, filepath.Join(folder, "charts")
		}
	}
	return "", ""
}

// git is what git prints about the repository; "" if this is not a git repository.
func git(t *testing.T, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "git", args...)
	cmd.Dir = testenv.Root()
	out, err := cmd.Output()
	if err != nil {
		t.Logf("git %s: %v", strings.Join(args, " "), err)
	}
	return string(out)
}
