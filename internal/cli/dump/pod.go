// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package dump

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// pod keeps where a Pod is, how its containers are started and their state.
func pod(u *unstructured.Unstructured) map[string]any {
	out := pick(u.Object, "spec.nodeName", "spec.serviceAccountName", "status")
	copyContainers(u.Object, out, "spec")
	return out
}

// deployment keeps a Deployment's desired and observed Pods.
func deployment(u *unstructured.Unstructured) map[string]any {
	out := pick(u.Object, "spec.replicas", "spec.strategy", "spec.template.metadata.labels", "spec.template.spec.serviceAccountName", "status")
	copyContainers(u.Object, out, "spec", "template", "spec")
	return out
}

// copyContainers copies the containers of a Pod, and the names of its volumes.
func copyContainers(from, to map[string]any, path ...string) {
	for _, list := range []string{"initContainers", "containers", "ephemeralContainers"} {
		if kept := each(from, container, append(slices.Clone(path), list)...); kept != nil {
			_ = unstructured.SetNestedSlice(to, kept, append(slices.Clone(path), list)...)
		}
	}
	if kept := each(from, volume, append(slices.Clone(path), "volumes")...); kept != nil {
		_ = unstructured.SetNestedSlice(to, kept, append(slices.Clone(path), "volumes")...)
	}
}

func each(from map[string]any, keep func(map[string]any) map[string]any, path ...string) []any {
	list, _, _ := unstructured.NestedSlice(from, path...)
	var out []any
	for _, item := range list {
		if m, ok := item.(map[string]any); ok {
			out = append(out, keep(m))
		}
	}
	return out
}

// container keeps a container without user-provided values.
func container(c map[string]any) map[string]any {
	out := map[string]any{}
	for _, field := range []string{"name", "image", "imagePullPolicy", "resources", "ports", "securityContext", "terminationMessagePolicy"} {
		if value, ok := c[field]; ok {
			out[field] = value
		}
	}
	if command, ok := c["command"].([]any); ok && len(command) > 0 {
		out["command"] = []any{removed}
	}
	if list, ok := c["args"].([]any); ok {
		out["args"] = arguments(list)
	}
	if names := each(c, variable, "env"); names != nil {
		out["env"] = names
	}
	if mounts := each(c, func(m map[string]any) map[string]any {
		return map[string]any{"name": m["name"], "mountPath": m["mountPath"]}
	}, "volumeMounts"); mounts != nil {
		out["volumeMounts"] = mounts
	}
	return out
}

// variable keeps the name and the source of an environment variable.
func variable(v map[string]any) map[string]any {
	out := map[string]any{"name": v["name"]}
	if from, ok := v["valueFrom"]; ok {
		out["valueFrom"] = from
	} else {
		out["value"] = removed
	}
	return out
}

// volume keeps the name and kind of a volume, and the object it mounts.
func volume(v map[string]any) map[string]any {
	out := map[string]any{"name": v["name"]}
	for kind, source := range v {
		if kind == "name" {
			continue
		}
		kept := map[string]any{}
		if m, ok := source.(map[string]any); ok {
			for _, field := range []string{"name", "secretName", "claimName"} {
				if name, ok := m[field]; ok {
					kept[field] = name
				}
			}
		}
		out[kind] = kept
	}
	return out
}

// arguments keeps the manager's flags with values after "=", and only the presence of all other arguments.
func arguments(list []any) []any {
	out := make([]any, len(list))
	for i, item := range list {
		text, _ := item.(string)
		name, _, _ := strings.Cut(text, "=")
		out[i] = removed
		if strings.HasPrefix(text, "-") && slices.Contains(managerFlags(), strings.TrimLeft(name, "-")) {
			out[i] = text
		}
	}
	return out
}
