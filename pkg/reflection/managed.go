// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package reflection

import (
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Annotations of Crossplane.
const (
	ExternalNameAnnotation  = "crossplane.io/external-name"
	ManagedPausedAnnotation = "crossplane.io/paused"
)

// Want is what an import wants to be there.
type Want struct {
	// Resources are complete managed resources, sorted by kind and name: the cluster first.
	Resources []*unstructured.Unstructured
	// Unserved are wanted kinds that the hub does not serve.
	Unserved []Kind
	// Lossy are identifiers that were observed and are not looked up.
	Lossy []Lossy
}

// Wanted says which managed resources an import wants, given what is observed so far: first the cluster, then what the
// cluster names. It is to be called again after each observation, until nothing new is wanted. A managed resource of
// the import that is no longer among them is to be deleted.
//
// Each has managementPolicies ["Observe"], deletionPolicy Orphan where its kind has one, and of forProvider the
// identifiers only, so nothing in it could be written to the cloud. The exception is ClusterAuth, whose controller
// knows no policies: it writes nothing to the cloud under any.
func Wanted(imp Import, served Served, observed Observed) (Want, error) {
	if err := imp.Validate(); err != nil {
		return Want{}, err
	}
	w := &wanter{imp: imp, served: served, seen: map[string]bool{}}
	c, _ := cloudOf(imp.Cloud)
	c.want(w, observed)
	w.want.Lossy = w.notes.list()
	return w.want, nil
}

// wanter collects what is wanted.
type wanter struct {
	imp    Import
	served Served
	want   Want
	notes  notes
	seen   map[string]bool
}

// add wants the managed resource for one external resource. identifiers become forProvider.
func (w *wanter) add(kind Kind, id, externalName string, identifiers map[string]any) *unstructured.Unstructured {
	gvk, namespaced, found := w.served.Managed(kind)
	if !found {
		if !slices.Contains(w.want.Unserved, kind) {
			w.want.Unserved = append(w.want.Unserved, kind)
		}
		return nil
	}
	name := ManagedName(w.imp, kind, namespaced, id)
	if w.seen[gvk.String()+name] {
		return nil
	}
	w.seen[gvk.String()+name] = true
	mr := w.managed(gvk, namespaced, name, identifiers)
	if externalName != "" {
		mr.SetAnnotations(merged(mr.GetAnnotations(), map[string]string{ExternalNameAnnotation: externalName}))
	}
	w.want.Resources = append(w.want.Resources, mr)
	return mr
}

func (w *wanter) managed(gvk schema.GroupVersionKind, namespaced bool, name string, identifiers map[string]any) *unstructured.Unstructured {
	providerConfig := map[string]any{"name": orElse(w.imp.ProviderConfig.Name, "default")}
	spec := map[string]any{
		"managementPolicies": []any{"Observe"},
		"forProvider":        identifiers,
		"providerConfigRef":  providerConfig,
	}
	mr := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
	if namespaced {
		mr.SetNamespace(w.imp.Namespace)
		providerConfig["kind"] = orElse(w.imp.ProviderConfig.Kind, "ClusterProviderConfig")
	} else {
		spec["deletionPolicy"] = "Orphan"
	}
	mr.SetGroupVersionKind(gvk)
	mr.SetName(name)
	mr.SetLabels(maps.Clone(w.imp.Labels))
	if w.imp.Paused {
		mr.SetAnnotations(map[string]string{ManagedPausedAnnotation: "true"})
	}
	return mr
}

// connect has the managed resource write its connection details.
func (w *wanter) connect(mr *unstructured.Unstructured) {
	if mr == nil || w.imp.ConnectionSecretName == "" {
		return
	}
	ref := map[string]any{"name": w.imp.ConnectionSecretName}
	if mr.GetNamespace() == "" {
		ref["namespace"] = w.imp.Namespace
	}
	mr.Object["spec"].(map[string]any)["writeConnectionSecretToRef"] = ref
}

// resources are the observed managed resources of a kind by external name.
func (o Observed) resources(imp Import, kind Kind) resources {
	found := resources{}
	for _, mr := range o.Resources {
		if mr == nil || !kind.Is(mr.GroupVersionKind().GroupKind()) {
			continue
		}
		if namespace := mr.GetNamespace(); namespace != "" && namespace != imp.Namespace {
			continue // Whoever made it there chose its provider configuration.
		}
		id := mr.GetAnnotations()[ExternalNameAnnotation]
		// The name holds the import's UID: another import's resource of the same external name is not this one's.
		if mr.GetName() == ManagedName(imp, kind, mr.GetNamespace() != "", id) {
			found[id] = mr
		}
	}
	return found
}

// IsGone tells whether the provider found that the external resource does not exist. Its last observation stays in the
// status of the managed resource, so that has to be asked first.
func IsGone(mr *unstructured.Unstructured) bool {
	conditions, _, _ := unstructured.NestedSlice(mr.Object, "status", "conditions")
	for _, c := range conditions {
		condition, _ := c.(map[string]any)
		message, _ := condition["message"].(string)
		if condition["type"] == "Synced" && condition["status"] == "False" &&
			strings.Contains(message, "external resource does not exist") {
			return true
		}
	}
	return false
}

// poolNames is the union of what the user lists, what is observed already and what Node labels show: sorted, each held
// against the cloud's grammar. A pool that is observed stays until its provider says that it is gone: one that is
// scaled to zero has no Nodes.
func (i Import) poolNames(observed Observed, kind Kind, n *notes) []string {
	names := slices.Clone(i.NodePools)
	if i.DiscoverNodePools {
		for name, mr := range observed.resources(i, kind) {
			if !IsGone(mr) {
				names = append(names, name)
			}
		}
		g, _ := cloudOf(i.Cloud)
		for k, node := range observed.Nodes {
			if k == maxNodes {
				n.add(Lossy{Field: "nodes", Reason: "Only the first 50000 Nodes were read"})
				break
			}
			name, labelled := node.Labels[g.poolLabel]
			switch {
			case !labelled:
			case g.pool.MatchString(name):
				names = append(names, name)
			default:
				n.add(Lossy{Field: "nodes", Observed: clean(name), Reason: "A Node label does not name a node pool of this cloud"})
			}
		}
	}
	slices.Sort(names)
	names = slices.Compact(names)
	if len(names) > MaxNodePools {
		// What the user lists stays.
		rest := slices.DeleteFunc(slices.Clone(names), func(name string) bool { return slices.Contains(i.NodePools, name) })
		names = append(slices.Clone(i.NodePools), rest[:MaxNodePools-len(i.NodePools)]...)
		slices.Sort(names)
		names = slices.Compact(names)
		n.add(Lossy{Field: "nodePools", Reason: "There are more node pools than are read"})
	}
	return names
}

func merged(into, more map[string]string) map[string]string {
	out := make(map[string]string, len(into)+len(more))
	maps.Copy(out, into)
	maps.Copy(out, more)
	return out
}

func orElse(s, other string) string {
	if s == "" {
		return other
	}
	return s
}

// resources are managed resources of one kind by external name.
type resources map[string]*unstructured.Unstructured
