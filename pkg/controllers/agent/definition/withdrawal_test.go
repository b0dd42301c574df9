// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package definition

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/masthead-dev/masthead/internal/test/agenttest"
)

func TestClosedDefinition(t *testing.T) {
	crd := agenttest.Parse(t, `{'apiVersion':'apiextensions.k8s.io/v1','kind':'CustomResourceDefinition','metadata':{'name':'a','annotations':{'a':'b'}},'spec':{'versions':[`+
		`{'name':'v1','schema':{'openAPIV3Schema':{'type':'object','x-kubernetes-validations':[{'rule':'self.a'}]}}},`+
		`{'name':'v2','schema':{'openAPIV3Schema':{'type':'object'}}}]}}`)
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	if _, closed := ClosedSince(crd); closed {
		t.Error("want a definition that was not closed to be open")
	}
	closed := ClosedDefinition(crd, now)
	if since, ok := ClosedSince(closed); !ok || !since.Equal(now) {
		t.Errorf("want it to be closed since %v, got %v %v", now, since, ok)
	}
	if again := ClosedDefinition(closed, now); !cmp.Equal(closed.Object, again.Object) {
		t.Errorf("want closing it twice to close it once (-once +twice):\n%s", cmp.Diff(closed.Object, again.Object))
	}
	if diff := cmp.Diff(crd.Object, Opened(closed).Object); diff != "" {
		t.Errorf("want opening it to restore it (-want +got):\n%s", diff)
	}
	half := closed.DeepCopy()
	versions, _, _ := unstructured.NestedSlice(half.Object, "spec", "versions")
	unstructured.RemoveNestedField(versions[1].(map[string]any), "schema")
	_ = unstructured.SetNestedSlice(half.Object, versions, "spec", "versions")
	if _, ok := ClosedSince(half); ok {
		t.Error("want a definition of which one version is open to be open, regardless of its annotation")
	}
}
