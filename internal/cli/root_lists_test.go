// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/internal/cli/fleet"
	"github.com/masthead-dev/masthead/pkg/providers/connection"
)

// wantLines fails for each pattern that matches no line of a text. NS in a pattern is the namespace.
func wantLines(t *testing.T, text, ns string, patterns ...string) {
	t.Helper()
	for _, pattern := range patterns {
		if !regexp.MustCompile(`(?m)` + strings.ReplaceAll(pattern, "NS", ns)).MatchString(text) {
			t.Errorf("want a line %s in:\n%s", pattern, text)
		}
	}
}

func TestClaims(t *testing.T) {
	f, ns := start(t)
	in := func(text string) string { return strings.ReplaceAll(text, "NS", ns) }
	apply(t, f.hub, strings.ReplaceAll(in(arrangedXRD), "xdatabases.db.test.dev", "claims."+ns))
	f.enroll(t, ns, "w1")
	f.enroll(t, ns, "dead", metav1.Condition{Type: fleetv1alpha1.ConditionConnected, Status: metav1.ConditionFalse, Reason: fleetv1alpha1.ReasonDialError})
	apply(t, f.hub, in(arrangedInHub), in(strings.NewReplacer("name: sql,", "name: taken,", "NS-w1", "NS-dead").Replace(arrangedInHub)))
	out, errOut, code := f.run(t, "claims", "-n", ns)
	if code != 0 {
		t.Fatal(errOut)
	}
	wantLines(t, out, ns, `^kubeconfig/NS/w1 +NS +Database +sql +NS/sql +NoClaim +False`, `^kubeconfig/NS/dead +NS +Database +taken +NS/taken +NotAsked`)
	wantLines(t, errOut, ns, `^not queried: kubeconfig/NS/dead: Masthead is not connected to it: DialError`)

	apply(t, f.workload, in(arrangedSyncedClaim), in(strings.Replace(refusedClaim("Conflict", "taken"), "name: sql, namespace: NS",
		`name: taken, namespace: NS, annotations: {agent.masthead.dev/conflict: 'the namespace "NS" of the cluster with the identifier "NS-dead"'}`, 1)))
	out, errOut, code = f.run(t, "claims", "-n", ns, "--cluster", ns+"/w1")
	if code != 0 {
		t.Fatal(errOut)
	}
	wantLines(t, out, ns, `^kubeconfig/NS/w1 +NS +Database +sql +NS/sql +Synced +False +<none>$`,
		`^kubeconfig/NS/w1 +NS +Database +taken +<none> +Conflict +<none> +kubeconfig/NS/dead in NS$`)
	if strings.Contains(out, "NotAsked") {
		t.Errorf("another cluster was not requested:\n%s", out)
	}
}

// jq '.claims[]' and the like work without objects, too: a list is never null.
func TestListsWithoutObjects(t *testing.T) {
	f, ns := start(t)
	f.enroll(t, ns, "w1")
	apply(t, f.hub, strings.ReplaceAll(arrangedXRD, "xdatabases.db.test.dev", "none."+ns))
	for _, arguments := range [][]string{
		{"claims", "-n", ns, "--cluster", ns + "/w1"}, {"apps", "-n", ns, "--cluster", ns + "/w1"}, {"imports", "-n", ns},
		{"top", "--metrics-file", "-", "--interval=0"}, {"health", "test", "-f", "-"},
	} {
		for _, format := range []string{"json", "yaml"} {
			metrics := ""
			if arguments[0] == "top" {
				metrics = "# TYPE masthead_build_info gauge\nmasthead_build_info{version=\"x\"} 1\n"
			}
			out, errOut, code := f.runWith(t, metrics, append(arguments, "-o", format)...)
			if code != 0 || strings.Contains(out, "null") || !strings.Contains(out, "[]") {
				t.Errorf("%v: want an empty list as %s, got %d %s:\n%s", arguments, format, code, errOut, out)
			}
		}
	}
	if got := fleet.Clusters(nil, nil, nil); got == nil {
		t.Error("want an empty list of clusters")
	}
	// What could not be queried may have some.
	f.enroll(t, ns, "dead", metav1.Condition{Type: fleetv1alpha1.ConditionConnected, Status: metav1.ConditionFalse, Reason: fleetv1alpha1.ReasonDialError})
	for command, want := range map[string]string{"claims": "claims", "apps": "Applications"} {
		_, errOut, _ := f.run(t, command, "-n", ns, "--cluster", ns+"/dead")
		wantLines(t, errOut, ns, `^There are no `+want+` in what could be queried\.$`)
	}
}

func TestApps(t *testing.T) {
	f, ns := start(t)
	f.enroll(t, ns, "w1")
	apply(t, f.workload, strings.ReplaceAll(arrangedFailures()["ComponentDegraded"].workload[0], "NS", ns),
		strings.ReplaceAll(`{apiVersion: apps.masthead.dev/v1alpha1, kind: Application, metadata: {name: new, namespace: NS}, spec: {selector: {}}}`, "NS", ns))
	failingPods(t, f, ns)
	out, errOut, code := f.run(t, "apps", "-n", ns, "--cluster", ns+"/w1")
	if code != 0 {
		t.Fatal(errOut)
	}
	wantLines(t, out, ns, `\A.*\nkubeconfig/NS/w1 +NS +shop +Degraded +False +1/1`, `^kubeconfig/NS/w1 +NS +new +Unknown +Unknown +<none> +Masthead has not observed`)
	out, errOut, code = f.run(t, "apps", "shop", "-n", ns, "--cluster", ns+"/w1")
	want := strings.ReplaceAll(`Application NS/shop Degraded
└─ StatefulSet NS/web Degraded PodFailed a Pod fails
   └─ Pod NS/web-0 Degraded ImagePullBackOff Container "web": its image "nosuch" cannot be pulled
`, "NS", ns)
	if code != 0 || out != want {
		t.Errorf("want:\n%s\ngot %s:\n%s", want, errOut, out)
	}
	if _, errOut, code = f.run(t, "apps", "nosuch", "-n", ns, "--cluster", ns+"/w1"); code != exitFailed || !strings.Contains(errOut, "there is no Application") {
		t.Errorf("an unknown Application is an error, got %d %s", code, errOut)
	}
}

func TestImports(t *testing.T) {
	f, ns := start(t)
	apply(t, f.hub, strings.ReplaceAll(arrangedFailures()["ImportNotObserved"].hub[0], "NS", ns))
	out, errOut, code := f.run(t, "imports", "-n", ns, "-o", "wide")
	if code != 0 {
		t.Fatal(errOut)
	}
	wantLines(t, out, ns, `^NS +shop +EKS .* False +ProviderError .*a managed resource cannot be observed$`)
}

func TestHealthTest(t *testing.T) {
	f, _ := start(t)
	file := filepath.Join(t.TempDir(), "rule.yaml")
	if err := os.WriteFile(file, []byte(`apiVersion: fleet.masthead.dev/v1alpha1
kind: HealthRule
metadata: {name: r}
spec: {group: x.test.dev, kind: Thing, degraded: object.status.broken, healthy: "true"}
`), 0o600); err != nil {
		t.Fatal(err)
	}
	const objects = `apiVersion: v1
kind: List
items:
- {apiVersion: x.test.dev/v1, kind: Thing, metadata: {name: a, namespace: b, generation: 2}, status: {broken: true}}
- {apiVersion: v1, kind: Secret, metadata: {name: s}, stringData: {password: hunter2}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: d, generation: 2}
spec: {replicas: 1}
status: {observedGeneration: 1}
`
	out, errOut, code := f.runWith(t, objects, "health", "test", "-f", "-", "--rule", file)
	if code != 0 {
		t.Fatal(errOut)
	}
	wantLines(t, out, "", `^Thing +b +a +Degraded`, `^Secret +<none> +s +Healthy`, `^Deployment +<none> +d +Progressing`)
	if strings.Contains(out, "hunter2") {
		t.Error("nothing of a Secret is printed")
	}
	if _, _, code = f.run(t, "health", "test"); code != exitMisused {
		t.Errorf("without a file there is nothing to judge, got %d", code)
	}
}

func TestEnrollAsks(t *testing.T) {
	f, ns := start(t)
	apply(t, f.hub, strings.ReplaceAll(arrangedClass, "NS", ns),
		strings.ReplaceAll(`{apiVersion: cluster.x-k8s.io/v1beta2, kind: Cluster, metadata: {name: w1, namespace: NS}, spec: {infrastructureRef: {apiGroup: a.dev, kind: X, name: w1}}}`, "NS", ns))
	label := func() string {
		out, _, _ := f.run(t, "clusters", "-o", "json")
		if strings.Contains(out, `"capi/`+ns+`/w1"`) {
			return "enrolled"
		}
		return "not enrolled"
	}
	out, errOut, code := f.runWith(t, "n\n", "enroll", "w1", "-n", ns, "--class", ns)
	if code != exitFailed || label() != "not enrolled" || !strings.Contains(errOut, "nothing was changed") || !strings.Contains(out, "synchronises their claims to the namespace "+ns) {
		t.Errorf("a refusal changes nothing, and the command shows what would happen; got %d %s\n%s", code, errOut, out)
	}
	if _, errOut, code = f.run(t, "enroll", "w1", "-n", ns, "--class", ns); code != exitFailed || label() != "not enrolled" {
		t.Errorf("no answer is not agreement, got %d %s", code, errOut)
	}
	if _, errOut, code = f.run(t, "enroll", "w1", "-n", ns, "--class", "nosuch", "--yes"); code != exitFailed || !strings.Contains(errOut, "no EnrollmentClass") {
		t.Errorf("an unknown class is an error, got %d %s", code, errOut)
	}
	f.publish(t, connection.Key{Source: "capi", Namespace: ns, Name: "w1"}, ns)
	out, errOut, code = f.runWith(t, "y\n", "enroll", "w1", "-n", ns, "--class", ns)
	if code != 0 || !strings.Contains(out, "Masthead is connected to the cluster capi/"+ns+"/w1") {
		t.Errorf("it waits until there is a connection, got %d %s\n%s", code, errOut, out)
	}
	out, errOut, code = f.run(t, "unenroll", "w1", "-n", ns, "--yes", "--wait=false")
	if code != 0 || !strings.Contains(out, "The label is removed") {
		t.Errorf("got %d %s\n%s", code, errOut, out)
	}
	if out, _, _ = f.run(t, "unenroll", "w1", "-n", ns, "--yes"); !strings.Contains(out, "is not enrolled") {
		t.Errorf("a cluster that is not enrolled is reported, got %s", out)
	}
}
