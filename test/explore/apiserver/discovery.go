// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"maps"
	"net/http"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// IsDiscovery reports whether a request asks which kinds the server has. client-go sends such requests under locks.
func IsDiscovery(req *http.Request) bool {
	parts := strings.Split(strings.Trim(req.URL.Path, "/"), "/")
	switch parts[0] {
	case "version", "openapi":
		return true
	case "api":
		return len(parts) < 3
	case "apis":
		return len(parts) < 4
	}
	return false
}

// discover answers requests for the lists of groups and resources.
func (s *Server) discover(path string) (any, bool) {
	switch parts := strings.Split(strings.Trim(path, "/"), "/"); {
	case path == "/version":
		return map[string]any{"major": "1", "minor": "37", "gitVersion": "v1.37.0"}, true
	case path == "/api":
		return metav1.APIVersions{TypeMeta: metav1.TypeMeta{Kind: "APIVersions"}, Versions: []string{"v1"}}, true
	case path == "/apis":
		return s.groups(), true
	case len(parts) == 2 && parts[0] == "apis":
		return s.group(parts[1])
	case len(parts) == 2 && parts[0] == "api":
		return s.resources(schema.GroupVersion{Version: parts[1]})
	case len(parts) == 3 && parts[0] == "apis":
		return s.resources(schema.GroupVersion{Group: parts[1], Version: parts[2]})
	}
	return nil, false
}

func (s *Server) groups() metav1.APIGroupList {
	versions := map[string]string{}
	for _, k := range s.kinds {
		if k.gvk.Group != "" {
			versions[k.gvk.Group] = k.gvk.Version
		}
	}
	out := metav1.APIGroupList{TypeMeta: metav1.TypeMeta{Kind: "APIGroupList", APIVersion: "v1"}}
	for _, group := range slices.Sorted(maps.Keys(versions)) {
		v := metav1.GroupVersionForDiscovery{GroupVersion: group + "/" + versions[group], Version: versions[group]}
		out.Groups = append(out.Groups, metav1.APIGroup{
			Name: group, Versions: []metav1.GroupVersionForDiscovery{v}, PreferredVersion: v,
		})
	}
	return out
}

// group is the one of a name.
func (s *Server) group(name string) (any, bool) {
	groups := s.groups().Groups
	i := slices.IndexFunc(groups, func(g metav1.APIGroup) bool { return g.Name == name })
	if i < 0 {
		return nil, false
	}
	groups[i].TypeMeta = metav1.TypeMeta{Kind: "APIGroup", APIVersion: "v1"}
	return groups[i], true
}

func (s *Server) resources(gv schema.GroupVersion) (any, bool) {
	out := metav1.APIResourceList{
		TypeMeta: metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"}, GroupVersion: gv.String(),
	}
	verbs := metav1.Verbs{"create", "delete", "get", "list", "patch", "update", "watch"}
	for _, k := range s.kinds {
		if k.gvk.GroupVersion() != gv {
			continue
		}
		r := metav1.APIResource{Name: k.resource, Kind: k.gvk.Kind, Namespaced: k.namespaced, Verbs: verbs}
		out.APIResources = append(out.APIResources, r)
		if k.status {
			r.Name += "/status"
			r.Verbs = metav1.Verbs{"get", "patch", "update"}
			out.APIResources = append(out.APIResources, r)
		}
	}
	slices.SortFunc(out.APIResources, func(a, b metav1.APIResource) int { return strings.Compare(a.Name, b.Name) })
	return out, len(out.APIResources) > 0
}
