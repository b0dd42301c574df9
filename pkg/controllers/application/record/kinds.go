// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package record

import (
	"k8s.io/apimachinery/pkg/runtime/schema"

	appsv1alpha1 "github.com/masthead-dev/masthead/apis/apps/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/controllers/application/definition"
	"github.com/masthead-dev/masthead/pkg/kindwatch"
	"github.com/masthead-dev/masthead/pkg/multicluster"
)

// JobKind is that of Jobs.
var JobKind = schema.GroupKind{Group: "batch", Kind: "Job"} //nolint:gochecknoglobals // A constant.

// Kinds that are watched besides those of components.
var (
	ApplicationKind = kindwatch.Kind{ //nolint:gochecknoglobals // A constant.
		GroupVersionKind:  appsv1alpha1.GroupVersion.WithKind("Application"),
		Resource:          "applications",
		StatusSubresource: true,
	}

	// The definition of Applications usually has Masthead's label. Otherwise it is watched separately: it may be missing,
	// or owned by others.
	OwnedDefinitionKind   = multicluster.OwnedDefinitions()               //nolint:gochecknoglobals // A constant.
	ForeignDefinitionKind = multicluster.DefinitionNamed(definition.Name) //nolint:gochecknoglobals // A constant.

	// Only changes of definitions and of API groups matter. They are watched while an Application names a kind.
	DefinitionKind = multicluster.Definitions() //nolint:gochecknoglobals // A constant.
	APIServiceKind = kindwatch.Kind{            //nolint:gochecknoglobals // A constant.
		GroupVersionKind: schema.GroupVersionKind{Group: "apiregistration.k8s.io", Version: "v1", Kind: "APIService"},
		Resource:         "apiservices",
		ClusterScoped:    true,
		MetadataOnly:     true,
	}

	// Pods of health checks are watched where there are Applications. The selector excludes all other Pods.
	HealthCheckPodKind = kindwatch.Kind{ //nolint:gochecknoglobals // A constant.
		GroupVersionKind: schema.GroupVersionKind{Version: "v1", Kind: "Pod"},
		Resource:         "pods",
		LabelSelector:    appsv1alpha1.HealthCheckLabel,
	}
)
