// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package charts

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/masthead-dev/masthead/internal/test/testenv"
)

// sampleGroup are the values for the API group of the samples.
const sampleGroup = `[{"group": "database.acmeco.org", "resources": ["mysqlinstancerequirements"]}]`

// TestChartsMakeWhatTheManifestsMake renders both and compares every object.
func TestChartsMakeWhatTheManifestsMake(t *testing.T) {
	h := newHelm(t, "")
	cases := map[string]struct {
		reason      string
		chart, want func(t *testing.T) objects
	}{
		"Default": {
			"Without values the two charts for a hub make config/default.",
			func(t *testing.T) objects {
				t.Helper()
				return merge(t, h.template(t, "masthead-crds"), h.template(t, "masthead"))
			},
			func(t *testing.T) objects { t.Helper(); return kustomize(t, "config/default") },
		},
		"Standalone": {
			"Two values make what config/standalone makes, for a hub that has nothing else.",
			func(t *testing.T) objects {
				t.Helper()
				return merge(t, h.template(t, "masthead-crds", "--set", "clusterProfiles=true"),
					h.template(t, "masthead", "--set", "extraArgs={--sources=kubeconfig}"))
			},
			func(t *testing.T) objects { t.Helper(); return kustomize(t, "config/standalone") },
		},
		"Imports": {
			"The rights for imports are those of config/imports.",
			func(t *testing.T) objects {
				t.Helper()
				return h.template(t, "masthead", "--set", "imports.clouds={eks,aks,gke}", "--show-only", "templates/manifests.yaml")
			},
			func(t *testing.T) objects {
				t.Helper()
				return merge(t, kustomize(t, "config/rbac"), kustomize(t, "config/policies"), kustomize(t, "config/imports"))
			},
		},
		"Claims": {
			"The seed's parameters make the class and the rights of the samples.",
			func(t *testing.T) objects {
				t.Helper()
				return h.template(t, "masthead", "--set", "default-target-namespace=bar", "--set-json", "apiGroups="+sampleGroup,
					"--set-json", `enrollmentClass.allowedNamespaces={"list": ["default"]}`,
					"--show-only", "templates/enrollmentclass.yaml", "--show-only", "templates/claims-rights.yaml")
			},
			func(t *testing.T) objects { t.Helper(); return files(t, "config/samples/hub/*.yaml") },
		},
		"Impersonation": {
			"To use the rights of a ServiceAccount is to be allowed to act as that one.",
			func(t *testing.T) objects {
				t.Helper()
				all := h.template(t, "masthead", "--set", "default-target-namespace=bar", "--set", "enrollmentClass.serviceAccount.namespace=bar",
					"--set", "enrollmentClass.serviceAccount.name=agent1", "--show-only", "templates/enrollmentclass.yaml")
				delete(all, "fleet.masthead.dev/v1alpha1 EnrollmentClass /default")
				return all
			},
			func(t *testing.T) objects { t.Helper(); return files(t, "config/samples/identity/impersonation.yaml") },
		},
		"Workload": {
			"Without values the chart for a workload cluster makes config/workload.",
			func(t *testing.T) objects { t.Helper(); return h.template(t, "masthead-workload") },
			func(t *testing.T) objects { t.Helper(); return files(t, "config/workload/*.yaml") },
		},
		"WorkloadSamples": {
			"The rights for claims and components, health checks and the policy are those of the samples.",
			func(t *testing.T) objects {
				t.Helper()
				return h.template(t, "masthead-workload", "--set-json", "apiGroups="+sampleGroup, "--set-json", "components.apiGroups="+sampleGroup,
					"--set", "healthChecks=true,componentsPolicy=true")
			},
			func(t *testing.T) objects {
				t.Helper()
				return files(t, "config/workload/*.yaml", "config/samples/workload/*-rights.yaml", "config/samples/workload/components-policy.yaml")
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want(t), tc.chart(t)); diff != "" {
				t.Errorf("%s\n-manifests, +chart:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestValuesDoWhatTheySay checks one field for each value that has no counterpart in config/.
func TestValuesDoWhatTheySay(t *testing.T) {
	const (
		deployment = "apps/v1 Deployment masthead-system/masthead"
		digest     = "sha256:0000000000000000000000000000000000000000000000000000000000000000"
	)
	container := []any{"spec", "template", "spec", "containers", 0}
	in := func(path []any, more ...any) []any { return append(slices.Clone(path), more...) }
	cases := map[string]struct {
		reason string
		values string
		object string
		field  []any
		want   any
	}{
		"Digest": {"A digest decides.", `image: {repository: registry.example.com/masthead, tag: v1, digest: "` + digest + `"}`, deployment,
			in(container, "image"), "registry.example.com/masthead:v1@" + digest},
		"Arguments": {"Flags follow what the chart sets, and win.", `{extraArgs: [--log-level=debug]}`, deployment,
			in(container, "args"), []any{"--leader-elect", "--log-level=debug"}},
		"Config": {"The configuration is the file that the manager reads.", `config: {log: {level: debug}}`,
			"v1 ConfigMap masthead-system/masthead-config", []any{"data", "manager.yaml"}, "log:\n  level: debug\n"},
		"ConfigIsRead": {"A flag names the file.", `config: {log: {level: debug}}`, deployment,
			in(container, "args"), []any{"--leader-elect", "--config=/etc/masthead/config/manager.yaml"}},
		"MemoryLimit": {"An explicit value wins over 90 % of the limit.", `goMemLimit: 512MiB`, deployment,
			in(container, "env", 1), map[string]any{"name": "GOMEMLIMIT", "value": "512MiB"}},
		"Certificate": {"The Secret is mounted where the flag says.", `metrics: {certificate: {secretName: mine}}`, deployment,
			[]any{"spec", "template", "spec", "volumes"},
			[]any{map[string]any{"name": "metrics-certificate", "secret": map[string]any{"secretName": "mine"}}}},
		"CertManager": {"The certificate is for the name of the Service.",
			`metrics: {certificate: {certManager: {enabled: true, issuerRef: {name: ca}}}}`,
			"cert-manager.io/v1 Certificate masthead-system/masthead-metrics", []any{"spec"}, map[string]any{
				"secretName": "masthead-metrics-certificate", "issuerRef": map[string]any{"name": "ca"},
				"dnsNames": []any{"masthead-metrics.masthead-system.svc"},
			}},
		"Monitor": {"Without a certificate none is checked.", `metrics: {serviceMonitor: {enabled: true}}`,
			"monitoring.coreos.com/v1 ServiceMonitor masthead-system/masthead", []any{"spec", "endpoints", 0, "tlsConfig"},
			map[string]any{"insecureSkipVerify": true}},
		"MonitorWithCertificate": {"With one it is.", `metrics: {serviceMonitor: {enabled: true}, certificate: {secretName: mine}}`,
			"monitoring.coreos.com/v1 ServiceMonitor masthead-system/masthead", []any{"spec", "endpoints", 0, "tlsConfig", "ca"},
			map[string]any{"secret": map[string]any{"name": "mine", "key": "ca.crt"}}},
		"Readers": {"Prometheus may read.", `metrics: {readers: [{namespace: monitoring, name: prometheus}]}`,
			"rbac.authorization.k8s.io/v1 ClusterRoleBinding /masthead-metrics-reader", []any{"subjects"},
			[]any{map[string]any{"kind": "ServiceAccount", "namespace": "monitoring", "name": "prometheus"}}},
		"Credentials": {"The seed's Secret is the class's identity.",
			`{match-namespaces: true, default-credentials-secret-name: my-sa-creds, enrollmentClass: {allowedNamespaces: {}}}`,
			"fleet.masthead.dev/v1alpha1 EnrollmentClass /default", []any{"spec"}, map[string]any{
				"allowedNamespaces": map[string]any{},
				"agent":             map[string]any{"matchNamespaces": true, "identity": map[string]any{"credentialsSecretName": "my-sa-creds"}},
			}},
		"Identifier": {"The seed's identifier is an annotation of what enrols the cluster.",
			`clusters: [{name: shop, namespace: edge, cluster-identifier: my-funny-little-cluster, kubeconfig: "{}"}]`,
			"v1 Secret edge/shop", nil, map[string]any{
				"apiVersion": "v1", "kind": "Secret", "type": "Opaque", "data": map[string]any{"kubeconfig": "e30="},
				"metadata": map[string]any{
					"name": "shop", "namespace": "edge", "labels": map[string]any{"masthead.dev/enroll": "default"},
					"annotations": map[string]any{"agent.crossplane.io/cluster-identifier": "my-funny-little-cluster"},
				},
			}},
		"OneCloud": {"Only that cloud's rights are granted; the others' are not there.", `imports: {clouds: [gke]}`,
			"rbac.authorization.k8s.io/v1 ClusterRole /masthead-imports-eks", nil, nil},
		"NoPolicies": {"Policies can be left out.", `policies: {enabled: false}`,
			"admissionregistration.k8s.io/v1 ValidatingAdmissionPolicy /cluster-api.imports.masthead.dev", nil, nil},
		"Egress": {"Where the Pods connect to can be limited.", `networkPolicy: {egress: [{ports: [{port: 6443, protocol: TCP}]}]}`,
			"networking.k8s.io/v1 NetworkPolicy masthead-system/masthead", []any{"spec", "policyTypes"}, []any{"Ingress", "Egress"}},
	}
	h := newHelm(t, "")
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			all := h.template(t, "masthead", "--values", write(t, tc.values))
			var got any
			if object, ok := all[tc.object]; ok {
				got = at(t, object, tc.field)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestRulesArePackaged compares the groups of the PrometheusRule with those of config/prometheus.
func TestRulesArePackaged(t *testing.T) {
	rule := newHelm(t, "").template(t, "masthead", "--set", "metrics.prometheusRule.enabled=true")["monitoring.coreos.com/v1 PrometheusRule masthead-system/masthead"]
	if rule == nil {
		t.Fatal("there is no PrometheusRule")
	}
	got := at(t, rule, []any{"spec", "groups"})
	if diff := cmp.Diff(ruleGroups(t), got); diff != "" {
		t.Errorf("-config/prometheus, +chart:\n%s", diff)
	}
}

// TestValuesAreChecked has one mistake in each case.
func TestValuesAreChecked(t *testing.T) {
	cases := map[string]struct {
		reason, chart, values, want string
	}{
		"Misspelt":       {"A value that no template reads is a mistake.", "masthead", `replica: 2`, "replica"},
		"MisspeltDeep":   {"Also below another one.", "masthead", `metrics: {serviceMonitor: {enable: true}}`, "enable"},
		"Type":           {"A number is no text.", "masthead", `replicas: two`, "replicas"},
		"BothTargets":    {"The class knows one target.", "masthead", `{default-target-namespace: bar, match-namespaces: true}`, "not both"},
		"BothIdentities": {"And one identity.", "masthead", `{match-namespaces: true, default-credentials-secret-name: a, enrollmentClass: {serviceAccount: {namespace: a, name: b}}}`, "not both"},
		"NoTarget":       {"Nothing is dropped in silence.", "masthead", `default-credentials-secret-name: a`, "needs default-target-namespace"},
		"NoPolicies":     {"Imports need their policies.", "masthead", `{imports: {clouds: [eks]}, policies: {enabled: false}}`, "need the policies"},
		"Wildcard":       {"Rights name their resources.", "masthead", `apiGroups: [{group: acmeco.org, resources: ["*"]}]`, "resources"},
		"AnyGroup":       {"And their group.", "masthead", `apiGroups: [{group: "*", resources: [a]}]`, "group"},
		"CoreGroup":      {"Claims are of no core group.", "masthead", `apiGroups: [{group: "", resources: [secrets]}]`, "group"},
		"NoIssuer":       {"A certificate needs an issuer.", "masthead", `metrics: {certificate: {certManager: {enabled: true}}}`, "issuerRef"},
		"ClassCalledTrue": {"The label's value has a meaning of its own.", "masthead",
			`{match-namespaces: true, enrollmentClass: {name: "true"}}`, "enrollmentClass"},
		"Workload":   {"The other charts are as strict.", "masthead-workload", `apiGroup: []`, "apiGroup"},
		"CRDs":       {"All of them.", "masthead-crds", `clusterProfile: true`, "clusterProfile"},
		"Components": {"Rights on components name resources, too.", "masthead-workload", `components: {apiGroups: [{group: a.example.org, resources: ["*"]}]}`, "resources"},
	}
	h := newHelm(t, "")
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := h.run(t, "template", "charts/"+tc.chart, "--values", write(t, tc.values))
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%s Want an error about %q, got: %v", tc.reason, tc.want, err)
			}
		})
	}
}

// TestLint runs Helm's own linter.
func TestLint(t *testing.T) {
	h := newHelm(t, "")
	for _, chart := range []string{"masthead-crds", "masthead", "masthead-workload"} {
		h.must(t, "lint", "--strict", "--quiet", "charts/"+chart)
	}
}

// at is what an object contains at a path of fields and indices.
func at(t *testing.T, object map[string]any, path []any) any {
	t.Helper()
	var value any = object
	for _, step := range path {
		switch step := step.(type) {
		case string:
			fields, _ := value.(map[string]any)
			value = fields[step]
		case int:
			list, _ := value.([]any)
			if step >= len(list) {
				u := unstructured.Unstructured{Object: object}
				t.Fatalf("%s %q has no %v", u.GetKind(), u.GetName(), path)
			}
			value = list[step]
		}
	}
	return value
}

// ruleGroups are the groups of config/prometheus, in the form of Prometheus or of its operator.
func ruleGroups(t *testing.T) any {
	t.Helper()
	var groups []any
	for _, text := range texts(t, "config/prometheus/*.yaml") {
		var file struct {
			Groups []any `json:"groups"`
			Spec   struct {
				Groups []any `json:"groups"`
			} `json:"spec"`
		}
		if err := yaml.Unmarshal([]byte(text), &file); err != nil {
			t.Fatal(err)
		}
		groups = append(append(groups, file.Groups...), file.Spec.Groups...)
	}
	return groups
}

// TestReleasedCharts packages the charts as a release does, twice.
func TestReleasedCharts(t *testing.T) {
	const (
		image  = "registry.example.com/masthead"
		digest = "sha256:1111111111111111111111111111111111111111111111111111111111111111"
	)
	h := newHelm(t, "")
	var packed [2]string
	for i := range packed {
		folder := t.TempDir()
		pack := exec.CommandContext(t.Context(), filepath.Join(testenv.Root(), "hack", "package-charts.sh"), "v0.1.0", image, digest, folder)
		pack.Env = append(os.Environ(), "SOURCE_DATE_EPOCH=1700000000")
		if out, err := pack.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		for _, chart := range []string{"masthead-crds", "masthead", "masthead-workload"} {
			path := filepath.Join(folder, chart+"-0.1.0.tgz")
			if out := h.must(t, "show", "chart", path); !strings.Contains(out, "version: 0.1.0\n") || !strings.Contains(out, "appVersion: v0.1.0\n") {
				t.Errorf("the chart does not say its version:\n%s", out)
			}
			data, err := os.ReadFile(filepath.Clean(path))
			if err != nil {
				t.Fatal(err)
			}
			packed[i] += string(data)
		}
		all := parse(t, "the packed chart", h.must(t, "template", "masthead", filepath.Join(folder, "masthead-0.1.0.tgz"), "--namespace", namespace))
		got := at(t, all["apps/v1 Deployment masthead-system/masthead"], []any{"spec", "template", "spec", "containers", 0, "image"})
		if want := image + ":v0.1.0@" + digest; got != want {
			t.Errorf("the packed chart runs %v, want %s", got, want)
		}
	}
	if packed[0] != packed[1] {
		t.Error("two packagings of one commit are the same bytes")
	}
}
