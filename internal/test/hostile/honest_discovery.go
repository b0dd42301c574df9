// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package hostile

import (
	"net/http"
	"slices"
	"strings"
)

// discover answers the three kinds of discovery requests. It does not offer aggregated discovery.
func (h *Honest) discover(w http.ResponseWriter, r *request) {
	h.mu.Lock()
	resources := slices.Clone(h.resources)
	h.mu.Unlock()
	switch path := strings.Trim(r.URL.Path, "/"); { //nolint:staticcheck // Later cases are no comparisons with the path.
	case path == "api":
		answerJSON(w, http.StatusOK, map[string]any{"kind": "APIVersions", "versions": []any{"v1"}})
	case path == "apis":
		answerJSON(w, http.StatusOK, map[string]any{"kind": "APIGroupList", "apiVersion": "v1", "groups": newGroups(resources)})
	default:
		groupVersion := strings.TrimPrefix(strings.TrimPrefix(path, "apis/"), "api/")
		found := []any{}
		for _, s := range resources {
			if s.groupVersion() == groupVersion {
				found = append(found, newDiscovery(s), discoveryOfStatus(s))
			}
		}
		for _, g := range newGroups(resources) {
			if group := g.(map[string]any); group["name"] == groupVersion {
				answerJSON(w, http.StatusOK, group)
				return
			}
		}
		if len(found) == 0 {
			answerStatus(w, http.StatusNotFound, "NotFound", "the server could not find the requested resource")
			return
		}
		answerJSON(w, http.StatusOK, map[string]any{
			"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": groupVersion, "resources": found,
		})
	}
}

func newDiscovery(s resource) map[string]any {
	return map[string]any{
		"name": s.name, "singularName": strings.ToLower(s.kind), "namespaced": s.namespaced, "kind": s.kind,
		"verbs": []string{"create", "delete", "get", "list", "patch", "update", "watch"},
	}
}

func discoveryOfStatus(s resource) map[string]any {
	return map[string]any{
		"name": s.name + "/status", "singularName": "", "namespaced": s.namespaced, "kind": s.kind, "verbs": []string{"get", "patch", "update"},
	}
}

func newGroups(resources []resource) []any {
	versions, order := map[string][]string{}, []string{}
	for _, s := range resources {
		if s.group == "" {
			continue
		}
		if versions[s.group] == nil {
			order = append(order, s.group)
		}
		if !slices.Contains(versions[s.group], s.version) {
			versions[s.group] = append(versions[s.group], s.version)
		}
	}
	groups := make([]any, 0, len(order))
	for _, name := range order {
		var listed []any
		for _, v := range versions[name] {
			listed = append(listed, map[string]any{"groupVersion": name + "/" + v, "version": v})
		}
		groups = append(groups, map[string]any{
			"kind": "APIGroup", "apiVersion": "v1", "name": name, "versions": listed, "preferredVersion": listed[0],
		})
	}
	return groups
}
