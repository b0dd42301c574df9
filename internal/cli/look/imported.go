// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package look

import (
	"context"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/masthead-dev/masthead/internal/cli/why"
)

func inNamespace(namespace string) client.ListOption { return client.InNamespace(namespace) }

// imported follows a ClusterImport to its managed resources.
func (l *Collector) imported(ctx context.Context, t *why.Thing) *why.Thing {
	t.Role = why.RoleImport
	if t.Object == nil {
		return t
	}
	references, _, _ := unstructured.NestedSlice(t.Object.Object, "status", "references")
	for _, r := range references {
		m, ok := r.(map[string]any)
		if !ok {
			continue
		}
		text := func(key string) string { s, _ := m[key].(string); return s }
		gv, err := schema.ParseGroupVersion(text("apiVersion"))
		if err != nil || gv.Group == "" || strings.HasSuffix(gv.Group, "cluster.x-k8s.io") {
			continue // The reflection follows what was observed.
		}
		t.Needs = append(t.Needs, l.thing(ctx, l.hub.ClusterClient, why.RoleHub, gv.WithKind(text("kind")), text("namespace"), text("name")))
	}
	return t
}
