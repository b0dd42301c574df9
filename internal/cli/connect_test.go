// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/masthead-dev/masthead/internal/cli/fleet"
	"github.com/masthead-dev/masthead/pkg/providers/connection"
)

func TestConnect(t *testing.T) {
	f, ns := start(t)
	apply(t, f.hub, strings.ReplaceAll(arrangedClass, "NS", ns))
	arguments := []string{"connect", "shop", "-n", ns, "--class", ns, "--workload-kubeconfig", f.kubeconfigs["workload"]}
	kubeconfigIn := func() []byte {
		secret := &corev1.Secret{}
		if err := f.hub.Get(t.Context(), types.NamespacedName{Namespace: ns, Name: "shop"}, secret); client.IgnoreNotFound(err) != nil {
			t.Fatal(err)
		}
		return secret.Data["kubeconfig"]
	}
	out, errOut, code := f.run(t, append(arguments, "--dry-run")...)
	if code != 0 {
		t.Fatal(errOut)
	}
	wantLines(t, out, ns, `^- ServiceAccount masthead-system/masthead$`, `^- ClusterRole masthead-workload-applications$`, `^In the hub the Secret NS/shop `,
		`masthead.dev/enroll=NS `, `^- .*synchronises their claims to the namespace NS`, `^Nothing was changed\.$`)
	if _, errOut, code = f.runWith(t, "n\n", arguments...); code != exitFailed || !strings.Contains(errOut, "nothing was changed") {
		t.Errorf("who says no changes nothing, got %d %s", code, errOut)
	}
	err := f.workload.Get(t.Context(), types.NamespacedName{Name: "masthead-workload"}, &rbacv1.ClusterRole{})
	if !apierrors.IsNotFound(err) || kubeconfigIn() != nil {
		t.Fatalf("nothing is there yet, got %v", err)
	}

	f.publish(t, connection.Key{Source: "kubeconfig", Namespace: ns, Name: "shop"}, ns)
	out, errOut, code = f.runWith(t, "y\n", arguments...)
	if code != 0 || !strings.Contains(out, "Masthead is connected to the cluster kubeconfig/"+ns+"/shop") {
		t.Fatalf("want a connection, got %d %s\n%s", code, errOut, out)
	}
	first := kubeconfigIn()
	cfg, err := clientcmd.RESTConfigFromKubeConfig(first)
	if err != nil {
		t.Fatal(err)
	}
	if cfg.BearerToken == "" || strings.Contains(out+errOut, cfg.BearerToken) {
		t.Error("there is a token, and it is not printed")
	}
	masthead, err := client.New(cfg, client.Options{Scheme: fleet.Scheme()})
	if err != nil {
		t.Fatal(err)
	}
	if err := masthead.Get(t.Context(), types.NamespacedName{Name: "kube-system"}, &corev1.Namespace{}); err != nil {
		t.Errorf("with the kubeconfig the cluster's identity can be read, got %v", err)
	}
	if err := masthead.List(t.Context(), &corev1.NodeList{}); !apierrors.IsForbidden(err) {
		t.Errorf("and what Masthead has no use for cannot, got %v", err)
	}
	if out, errOut, code = f.run(t, append(arguments, "--yes", "--wait=false")...); code != 0 || string(kubeconfigIn()) == string(first) {
		t.Errorf("again, it writes another token, got %d %s\n%s", code, errOut, out)
	}
}

func TestConnectRefuses(t *testing.T) {
	f, ns := start(t)
	apply(t, f.hub, strings.ReplaceAll(arrangedClass, "NS", ns), strings.ReplaceAll(`{apiVersion: v1, kind: Secret, metadata: {name: taken, namespace: NS}}`, "NS", ns))
	workload := "--workload-kubeconfig=" + f.kubeconfigs["workload"]
	for name, tc := range map[string]struct {
		reason    string
		arguments []string
		code      int
		message   string
	}{
		"Nowhere":   {reason: "The cluster is not guessed.", arguments: []string{"shop"}, code: exitMisused, message: "specify the cluster"},
		"NoContext": {reason: "An unknown context is an error.", arguments: []string{"shop", workload, "--workload-context=nosuch"}, code: exitMisused, message: "nosuch"},
		"Hub":       {reason: "The hub is no workload cluster.", arguments: []string{"shop", "--workload-kubeconfig=" + f.kubeconfigs["hub"]}, code: exitFailed, message: "leads to the hub"},
		"Taken":     {reason: "A Secret of another owner is not overwritten.", arguments: []string{"taken", workload}, code: exitFailed, message: "was not created by this command"},
		"NoClass":   {reason: "Without a class, it would not be connected.", arguments: []string{"shop", workload, "--class=nosuch"}, code: exitFailed, message: "no EnrollmentClass"},
		"Metadata":  {reason: "The manager would refuse the address.", arguments: []string{"shop", workload, "--server=https://169.254.169.254"}, code: exitFailed, message: "the manager would not use"},
	} {
		t.Run(name, func(t *testing.T) {
			_, errOut, code := f.run(t, append([]string{"connect", "-n", ns, "--class", ns, "--yes"}, tc.arguments...)...)
			if code != tc.code || !strings.Contains(errOut, tc.message) {
				t.Errorf("%s Want %d with %q, got %d %s", tc.reason, tc.code, tc.message, code, errOut)
			}
		})
	}
}
