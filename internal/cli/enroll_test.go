// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"encoding/json"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clientcmdv1 "k8s.io/client-go/tools/clientcmd/api/v1"
	inventoryv1alpha1 "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/providers/clusterprofile"
	"github.com/masthead-dev/masthead/pkg/providers/connection"
)

// TestClusterProfilesOfOthers enrols the ClusterProfile of another cluster manager, and reads what is in its cluster.
func TestClusterProfilesOfOthers(t *testing.T) {
	f, ns := start(t)
	in := func(text string) string { return strings.ReplaceAll(text, "NS", ns) }
	var workload clientcmdv1.Config
	if err := yaml.Unmarshal(f.contents["workload"], &workload); err != nil {
		t.Fatal(err)
	}
	reached := workload.Clusters[0].Cluster
	theirs := map[string]any{
		"apiVersion": "multicluster.x-k8s.io/v1alpha1", "kind": "ClusterProfile",
		"metadata": map[string]any{"namespace": ns, "name": "w1"},
		"spec":     map[string]any{"clusterManager": map[string]any{"name": "other"}},
		"status": map[string]any{"accessProviders": []any{map[string]any{
			"name": "kubeconfig-secretreader", "cluster": map[string]any{
				"server": reached.Server, "certificate-authority-data": reached.CertificateAuthorityData,
				"extensions": []any{map[string]any{
					"name": "client.authentication.k8s.io/exec", "extension": map[string]any{"name": "w1", "key": "config"},
				}},
			},
		}}},
	}
	profile, err := json.Marshal(theirs)
	if err != nil {
		t.Fatal(err)
	}
	apply(t, f.hub, in(arrangedClass), string(profile))

	enroll := []string{"enroll", "clusterprofile/w1", "-n", ns, "--class", ns, "--yes", "--wait=false"}
	if out, errOut, code := f.run(t, enroll...); code != 0 {
		t.Fatalf("got %d %s\n%s", code, errOut, out)
	}
	out, _, _ := f.run(t, "clusters", "-o", "wide")
	wantLines(t, out, ns, `^clusterprofile/NS/w1 +Unknown +NotPublished +NS .*with this source`)

	f.publish(t, connection.Key{Source: "clusterprofile", Namespace: ns, Name: "w1"}, ns)
	ours := &inventoryv1alpha1.ClusterProfile{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "clusterprofile-w1"}}
	label := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"masthead.dev/enroll":"true"}}}`))
	if err := f.hub.Patch(t.Context(), ours, label); err != nil {
		t.Fatal(err)
	}
	for name, mark := range map[string]func(*inventoryv1alpha1.ClusterProfile){
		"by-manager": func(p *inventoryv1alpha1.ClusterProfile) { p.Spec.ClusterManager.Name = fleetv1alpha1.FieldManager },
		"by-cluster": func(p *inventoryv1alpha1.ClusterProfile) {
			p.Annotations = map[string]string{fleetv1alpha1.ClusterNameAnnotation: "clusterprofile/" + ns + "/w1"}
		},
	} {
		p := &inventoryv1alpha1.ClusterProfile{
			ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name, Labels: map[string]string{fleetv1alpha1.EnrollLabel: "true"}},
			Spec:       inventoryv1alpha1.ClusterProfileSpec{ClusterManager: inventoryv1alpha1.ClusterManager{Name: "other"}},
		}
		mark(p)
		if err := f.hub.Create(t.Context(), p); err != nil {
			t.Fatal(err)
		}
	}
	out, _, _ = f.run(t, "clusters")
	wantLines(t, out, ns, `^clusterprofile/NS/w1 +Connected`)
	for _, name := range []string{"clusterprofile-w1", "by-manager", "by-cluster"} {
		if strings.Contains(out, "clusterprofile/"+ns+"/"+name) {
			t.Errorf("Masthead's own ClusterProfile %s enrols nothing:\n%s", name, out)
		}
		enroll[1] = "clusterprofile/" + name
		if _, errOut, code := f.run(t, enroll...); code != exitMisused || !strings.Contains(errOut, "Masthead's own") {
			t.Errorf("Masthead's own ClusterProfile %s is not enrolled, got %d %s", name, code, errOut)
		}
	}

	// The workload cluster is reached as Masthead does it, with its rules.
	claims := []string{"claims", "-n", ns, "--cluster", "clusterprofile/" + ns + "/w1"}
	apply(t, f.hub, strings.ReplaceAll(in(arrangedXRD), "xdatabases.db.test.dev", "profiles."+ns))
	apply(t, f.workload, in(arrangedSyncedClaim))
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "w1"}, Data: map[string][]byte{"config": f.contents["workload"]},
	}
	if err := f.hub.Create(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
	_, errOut, _ := f.run(t, claims...)
	if !strings.Contains(errOut, "does not carry the label "+clusterprofile.ProfileLabel) {
		t.Errorf("want a Secret without consent not to be used, got %s", errOut)
	}
	secret.Labels = map[string]string{clusterprofile.ProfileLabel: "w1"}
	if err := f.hub.Update(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
	var code int
	if out, errOut, code = f.run(t, claims...); code != 0 {
		t.Fatal(errOut)
	}
	wantLines(t, out, ns, `^clusterprofile/NS/w1 +NS +Database +sql `)

	// Nothing is sent to a server that a ClusterProfile names unless the user means that cluster.
	const refused = `^not queried: clusterprofile/NS/w1: .* is reached with --cluster clusterprofile/NS/w1 only`
	for _, sweep := range []string{"apps", "claims"} {
		_, errOut, _ = f.run(t, sweep, "-n", ns)
		wantLines(t, errOut, ns, refused)
	}
	_, errOut, _ = f.run(t, "apps", "none", "-n", ns)
	wantLines(t, errOut, ns, refused)
	_, errOut, _ = f.run(t, "why", "database", "none", "-n", ns)
	wantLines(t, errOut, ns, `; not queried: (.*, )?clusterprofile/NS/w1[, ].*name one with --cluster`)

	// What holds a cluster is looked for in the enrolled profile, and not in a Secret of its name.
	f.publish(t, connection.Key{Source: "clusterprofile", Namespace: ns, Name: "gone"}, ns, metav1.Condition{
		Type: fleetv1alpha1.ConditionConnected, Status: metav1.ConditionFalse,
		Reason: fleetv1alpha1.ReasonBadKubeconfig, Message: "names a Secret in another namespace",
	})
	out, _, _ = f.run(t, "why", "cluster", ns+"/gone")
	wantLines(t, out, ns, `ClusterProfile NS/gone .*NotFound`)
}
