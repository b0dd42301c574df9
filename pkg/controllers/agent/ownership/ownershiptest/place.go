// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

// Package ownershiptest provides places for the agent's tests.
package ownershiptest

import (
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/masthead-dev/masthead/pkg/controllers/agent/ownership"
	"github.com/masthead-dev/masthead/pkg/kindwatch"
)

// InBar is a place of a claim in the namespace "bar" of the hub.
func InBar(name string) ownership.Place {
	return ownership.Place{
		Kind: kindwatch.Kind{
			GroupVersionKind: schema.GroupVersionKind{Group: "db.acmeco.org", Version: "v1alpha1", Kind: "MySQLInstance"},
			Resource:         "mysqlinstances",
		},
		NamespacedName: types.NamespacedName{Namespace: "bar", Name: name},
	}
}
