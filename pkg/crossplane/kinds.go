// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package crossplane

import (
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/masthead-dev/masthead/pkg/kindwatch"
)

// Kinds of the hub that are always watched.
var (
	XRDKind = kindwatch.Kind{ //nolint:gochecknoglobals // A constant.
		GroupVersionKind: schema.GroupVersionKind{
			Group: "apiextensions.crossplane.io", Version: "v1", Kind: "CompositeResourceDefinition",
		},
		Resource:      "compositeresourcedefinitions",
		ClusterScoped: true,
	}

	HubCRDKind = kindwatch.Kind{ //nolint:gochecknoglobals // A constant.
		GroupVersionKind: CRDGVK,
		Resource:         "customresourcedefinitions",
		ClusterScoped:    true,
		MetadataOnly:     true,
	}

	// HubSecretKind are the connection Secrets of the hub, without their data. Other Secrets are not seen at all.
	HubSecretKind = kindwatch.Kind{ //nolint:gochecknoglobals // A constant.
		GroupVersionKind: schema.GroupVersionKind{Version: "v1", Kind: "Secret"},
		Resource:         "secrets",
		MetadataOnly:     true,
		FieldSelector:    "type=" + string(SecretTypeConnection),
	}
)

// CRDGVK is the kind of CustomResourceDefinitions.
var CRDGVK = schema.GroupVersionKind{ //nolint:gochecknoglobals // A constant.
	Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition",
}
