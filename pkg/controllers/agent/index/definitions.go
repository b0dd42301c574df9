// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package index

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/masthead-dev/masthead/pkg/controllers/agent/ownership"
	"github.com/masthead-dev/masthead/pkg/crossplane"
)

// Judgement identifies the states of the definitions on both sides that RetainedKind depends on, so that they are not
// read again while unchanged. known is false while they cannot be read.
func (h *Hub) Judgement(crd *unstructured.Unstructured, name string) (states string, known bool) {
	hub, err := h.Watcher.Get(crossplane.HubCRDKind, types.NamespacedName{Name: name})
	if client.IgnoreNotFound(err) != nil {
		return "", false
	}
	if crd == nil {
		return "", true
	}
	states = ownership.SecretVersion(crd)
	if err == nil {
		states += " " + ownership.SecretVersion(hub)
	}
	return states, true
}
