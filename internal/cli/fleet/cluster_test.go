// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	inventoryv1alpha1 "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/providers/credentials"
)

func profile(namespace, name, manager, cluster string) inventoryv1alpha1.ClusterProfile {
	return inventoryv1alpha1.ClusterProfile{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Annotations: map[string]string{fleetv1alpha1.ClusterNameAnnotation: cluster}},
		Spec:       inventoryv1alpha1.ClusterProfileSpec{ClusterManager: inventoryv1alpha1.ClusterManager{Name: manager}},
	}
}

func TestClusters(t *testing.T) {
	for name, tc := range map[string]struct {
		reason  string
		profile inventoryv1alpha1.ClusterProfile
		want    string
	}{
		"Ours":    {reason: "Masthead wrote it.", profile: profile("a", "capi-w1", "masthead", "capi/a/w1"), want: "capi/a/w1"},
		"Foreign": {reason: "Another cluster manager's says nothing.", profile: profile("a", "capi-w1", "other", "capi/a/w1")},
		"Copied":  {reason: "One in another namespace speaks for no cluster of this one.", profile: profile("b", "capi-w1", "masthead", "capi/a/w1")},
		"Renamed": {reason: "Nor does one of another name.", profile: profile("a", "x", "masthead", "capi/a/w1")},
		"Unnamed": {reason: "One that names no cluster says nothing.", profile: profile("a", "capi-w1", "masthead", "")},
	} {
		t.Run(name, func(t *testing.T) {
			got := Clusters(nil, []inventoryv1alpha1.ClusterProfile{tc.profile}, nil)
			if (tc.want == "") != (len(got) == 0) || tc.want != "" && got[0].Name != tc.want {
				t.Errorf("%s want %q, got %+v", tc.reason, tc.want, got)
			}
		})
	}
}

func TestFind(t *testing.T) {
	clusters := Clusters(nil, []inventoryv1alpha1.ClusterProfile{
		profile("a", "capi-w1", "masthead", "capi/a/w1"), profile("b", "capi-w1", "masthead", "capi/b/w1"),
		profile("b", "kubeconfig-w2", "masthead", "kubeconfig/b/w2"),
	}, nil)
	for name, tc := range map[string]struct{ reason, word, want, err string }{
		"Full":      {reason: "The name is exact.", word: "capi/a/w1", want: "capi/a/w1"},
		"Short":     {reason: "One cluster has that name.", word: "w2", want: "kubeconfig/b/w2"},
		"Profile":   {reason: "The ClusterProfile's name is what kubectl shows.", word: "kubeconfig-w2", want: "kubeconfig/b/w2"},
		"Namespace": {reason: "The namespace tells them apart.", word: "b/w1", want: "capi/b/w1"},
		"Ambiguous": {reason: "Nothing is guessed.", word: "w1", err: "name one of these clusters: capi/a/w1, capi/b/w1"},
		"None":      {reason: "The error lists the clusters.", word: "w9", err: "there are: capi/a/w1"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Find(clusters, tc.word)
			if tc.err != "" {
				if err == nil || !strings.Contains(err.Error(), tc.err) {
					t.Errorf("%s want %q, got %v", tc.reason, tc.err, err)
				}
				return
			}
			if err != nil || got.Name != tc.want {
				t.Errorf("%s want %q, got %v, %v", tc.reason, tc.want, got, err)
			}
		})
	}
}

func TestKubeconfigsAreNotTrusted(t *testing.T) {
	kubeconfig := func(server, user string) []byte {
		return []byte(`{apiVersion: v1, kind: Config, current-context: c, contexts: [{name: c, context: {cluster: c, user: u}}],
 clusters: [{name: c, cluster: {server: "` + server + `"}}], users: [{name: u, user: ` + user + `}]}`)
	}
	for name, tc := range map[string]struct {
		reason     string
		kubeconfig []byte
		want       string
	}{
		"Exec":     {reason: "It would run a program on the user's machine.", kubeconfig: kubeconfig("https://w1.example.org", `{exec: {command: evil, apiVersion: client.authentication.k8s.io/v1}}`), want: "exec"},
		"File":     {reason: "It would read a file of the user.", kubeconfig: kubeconfig("https://w1.example.org", `{tokenFile: /etc/passwd}`), want: "tokenFile"},
		"Loopback": {reason: "It would lead to what listens on the user's machine.", kubeconfig: kubeconfig("https://127.0.0.1:6443", `{token: t}`), want: "loopback"},
		"Metadata": {reason: "It would lead to a cloud's metadata service.", kubeconfig: kubeconfig("https://169.254.169.254", `{token: t}`), want: "link-local"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := newConfig(tc.kubeconfig, credentials.Options{}); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%s want an error about %q, got %v", tc.reason, tc.want, err)
			}
		})
	}
}
