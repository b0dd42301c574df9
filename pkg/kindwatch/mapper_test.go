// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package kindwatch

import (
	"errors"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// recordingLister serves documents, and records which were requested.
type recordingLister struct {
	documents map[string][]metav1.APIResource
	err       error
	requested []string
}

func (l *recordingLister) ServerResourcesForGroupVersion(gv string) (*metav1.APIResourceList, error) {
	l.requested = append(l.requested, gv)
	return &metav1.APIResourceList{GroupVersion: gv, APIResources: l.documents[gv]}, l.err
}

// otherMapper answers everything in one way.
type otherMapper struct{ meta.RESTMapper }

func (otherMapper) RESTMapping(gk schema.GroupKind, _ ...string) (*meta.RESTMapping, error) {
	return &meta.RESTMapping{Resource: schema.GroupVersionResource{Resource: "other"}, GroupVersionKind: gk.WithVersion("other")}, nil
}

func TestMapper(t *testing.T) {
	watched := metav1.Verbs{"get", "list", "watch", "create"}
	documents := map[string][]metav1.APIResource{
		"v1":         {{Name: "secrets", Kind: "Secret", Namespaced: true, Verbs: watched}, {Name: "namespaces", Kind: "Namespace", Verbs: watched}},
		"acme.org/a": {{Name: "reviews", Kind: "Review", Verbs: metav1.Verbs{"create"}}, {Name: "disks", Kind: "Disk", Verbs: watched}},
	}
	for _, tc := range []struct {
		name, reason string
		gk           schema.GroupKind
		versions     []string
		err          error
		resource     string
		scope        meta.RESTScopeName
		noMatch      bool
		requested    int
	}{
		{
			name: "namespaced", reason: "One document says it.", gk: schema.GroupKind{Kind: "Secret"}, versions: []string{"v1"},
			resource: "secrets", scope: meta.RESTScopeNameNamespace, requested: 1,
		},
		{
			name: "cluster-scoped", reason: "Its path has no namespace.", gk: schema.GroupKind{Kind: "Namespace"}, versions: []string{"v1"},
			resource: "namespaces", scope: meta.RESTScopeNameRoot, requested: 1,
		},
		{
			name: "second version", reason: "The first version that is served counts, and is requested once.", gk: schema.GroupKind{Group: "acme.org", Kind: "Disk"},
			versions: []string{"b", "a"}, resource: "disks", scope: meta.RESTScopeNameRoot, requested: 3,
		},
		{
			name: "not served", reason: "It may be served by the next time, so that it is requested again.", gk: schema.GroupKind{Group: "acme.org", Kind: "Lake"},
			versions: []string{"a"}, noMatch: true, requested: 2,
		},
		{
			name: "no version", reason: "Which is preferred is not in the document.", gk: schema.GroupKind{Kind: "Secret"}, resource: "other",
		},
		{
			name: "cannot be watched", reason: "It can still be created.", gk: schema.GroupKind{Group: "acme.org", Kind: "Review"}, versions: []string{"a"},
			resource: "other", requested: 2,
		},
		{
			name: "no answer", reason: "That is not the same as not served.", gk: schema.GroupKind{Kind: "Secret"}, versions: []string{"v1"},
			err: errors.New("the server is away"), requested: 2,
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			lister := &recordingLister{documents: documents, err: tc.err}
			m := NewMapper(lister, otherMapper{}, nil)
			for range 2 {
				mapping, err := m.RESTMapping(tc.gk, tc.versions...)
				switch {
				case (err != nil) != (tc.noMatch || tc.err != nil):
					t.Fatalf("%s Got %v", tc.reason, err)
				case err != nil:
					if meta.IsNoMatchError(err) != tc.noMatch {
						t.Errorf("%s Got %v", tc.reason, err)
					}
				case mapping.Resource.Resource != tc.resource:
					t.Errorf("%s Got %v", tc.reason, mapping)
				case tc.scope != "" && mapping.Scope.Name() != tc.scope:
					t.Errorf("%s Got %v", tc.reason, mapping.Scope.Name())
				}
			}
			if len(lister.requested) != tc.requested {
				t.Errorf("%s Want %d requests, got %v", tc.reason, tc.requested, lister.requested)
			}
		})
	}
}
