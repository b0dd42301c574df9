// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/internal/test/agenttest"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/ownership"
)

// hubMetadata waits until a hub object has these labels and annotations, apart from Masthead's.
func (f *fixture) hubMetadata(name string, want map[string]string) {
	f.T.Helper()
	f.Within("the metadata of "+name+" in the hub is what may travel", func() error {
		hub, err := f.GetClaim(f.Hub, f.Target, name)
		if err != nil {
			return err
		}
		annotations := maps.Clone(hub.GetAnnotations())
		maps.DeleteFunc(annotations, func(key, _ string) bool {
			return strings.HasPrefix(key, "agent.masthead.dev/") || strings.HasPrefix(key, "agent.crossplane.io/")
		})
		if diff := cmp.Diff([]map[string]string{want, want}, []map[string]string{hub.GetLabels(), annotations}); diff != "" {
			return fmt.Errorf("labels and annotations (-want +got):\n%s", diff)
		}
		return nil
	})
}

func TestMetadataOfDeploymentToolsDoesNotTravel(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	tools := map[string]string{
		"app.kubernetes.io/instance": "shop", "app.kubernetes.io/managed-by": "Helm", "argocd.argoproj.io/tracking-id": "shop",
		"kustomize.toolkit.fluxcd.io/name": "shop", "meta.helm.sh/release-name": "shop", "kapp.k14s.io/app": "1",
	}
	own := map[string]string{"team": "a", "app.kubernetes.io/name": "db", "deploy.acmeco.org/release": "r1"}
	everything := maps.Clone(tools)
	maps.Copy(everything, own)
	marked := func(u *unstructured.Unstructured) {
		u.SetLabels(everything)
		u.SetAnnotations(everything)
	}

	// Applied by a Masthead version that knew no tools, and added by a user in the hub.
	before := f.NewClaim(f.Target, "old")
	before.Object["spec"] = map[string]any{"version": "5.7", "storageGB": int64(20)}
	marked(before)
	annotations := maps.Clone(everything)
	maps.Copy(annotations, f.source().Annotations())
	annotations[ownership.AppliedHashAnnotation] = "0123"
	before.SetAnnotations(annotations)
	apply := client.ApplyConfigurationFromUnstructured(before)
	if err := f.Hub.Apply(f.Ctx, apply, client.FieldOwner(ownership.FieldManager(f.Identifier))); err != nil {
		t.Fatal(err)
	}
	f.Edit(f.Hub, before, func() {
		labels := before.GetLabels()
		labels["helm.sh/chart"] = "the-hubs-own"
		before.SetLabels(labels)
	})
	f.CreateClaim("old", marked)
	f.Within("what has travelled before is removed", func() error {
		hub, err := f.GetClaim(f.Hub, f.Target, "old")
		if err != nil {
			return err
		}
		want := maps.Clone(own)
		want["helm.sh/chart"] = "the-hubs-own"
		if diff := cmp.Diff(want, hub.GetLabels()); diff != "" {
			return fmt.Errorf("labels (-want +got):\n%s", diff)
		}
		for key := range tools {
			if _, there := hub.GetAnnotations()[key]; there {
				return fmt.Errorf("the annotation %s is there", key)
			}
		}
		return nil
	})

	f.CreateClaim("db", func(u *unstructured.Unstructured) {
		marked(u)
		agenttest.WithSecret("db-conn")(u)
	})
	f.hubMetadata("db", own)

	// The class can exclude more, and what was synchronised is removed.
	f.editClass(func(a *fleetv1alpha1.AgentSpec) { a.ExcludedMetadata = []string{"acmeco.org/*"} })
	f.hubMetadata("db", map[string]string{"team": "a", "app.kubernetes.io/name": "db"})

	// No metadata of the hub's Secret is copied back.
	secret := f.CreateConnectionSecret("db-conn", f.WaitForPushed("db"), "one")
	f.Edit(f.Hub, secret, func() {
		secret.Labels, secret.Annotations = maps.Clone(everything), maps.Clone(everything)
	})
	f.Within("the connection Secret arrives", func() error {
		got := &corev1.Secret{}
		if err := f.Workload.Get(f.Ctx, types.NamespacedName{Namespace: f.Namespace, Name: "db-conn"}, got); err != nil {
			return err
		}
		if len(got.Labels) != 2 || len(got.Annotations) != 1 {
			return fmt.Errorf("its metadata are %v and %v", got.Labels, got.Annotations)
		}
		return nil
	})
}
