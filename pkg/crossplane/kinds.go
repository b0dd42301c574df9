// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package crossplane

import (
	"k8s.io/apimachinery/pkg/runtime/schema"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
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

	// HubSecretKind are the connection Secrets of the hub, without their data. Other Secrets are not watched at all. Of
	// the metadata of a connection Secret, only the owner and whether it stays in the hub are kept: tenants of the hub
	// write the rest, up to 256 KiB of annotations for each Secret.
	HubSecretKind = kindwatch.Kind{ //nolint:gochecknoglobals // A constant.
		GroupVersionKind: schema.GroupVersionKind{Version: "v1", Kind: "Secret"},
		Resource:         "secrets",
		MetadataOnly:     true,
		OnlyAnnotations:  kindwatch.NoAnnotations,
		OnlyLabels:       fleetv1alpha1.DeliverLabel,
		KeepController:   true,
		FieldSelector:    "type=" + string(SecretTypeConnection),
	}
)

// CRDGVK is the kind of CustomResourceDefinitions.
var CRDGVK = schema.GroupVersionKind{ //nolint:gochecknoglobals // A constant.
	Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition",
}
