// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package fakecloud

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/masthead-dev/masthead/internal/test/fakecloud/layouts"
)

// fixture returns what a provider shows of a resource in one of the layouts. The layouts are part of the program, so
// reading them cannot fail.
func fixture(layout, kind, externalName string) map[string]any {
	f, err := layouts.Load(layout)
	if err != nil {
		panic(err)
	}
	for _, r := range f.Resources {
		if strings.HasPrefix(kind, r.Family+".") && strings.HasSuffix(kind, "/"+r.Kind) && r.ExternalName == externalName {
			return r.AtProvider
		}
	}
	panic(fmt.Sprintf("the layout %q has no %s %q", layout, kind, externalName))
}

// plain converts values of Go's own types to those of unstructured objects.
func plain(value map[string]any) map[string]any {
	document, err := json.Marshal(value)
	if err != nil {
		panic(err)
	}
	decoded := map[string]any{}
	if err := json.Unmarshal(document, &decoded); err != nil {
		panic(err)
	}
	return layouts.WholeNumbers(decoded)
}

// shaper converts what the cloud knows to the shape in which the hub serves status.atProvider of a kind.
type shaper func(atProvider map[string]any) map[string]any

func (p *Providers) shaper(ctx context.Context, kind schema.GroupVersionKind) (shaper, error) {
	mapping, err := p.hub.RESTMapper().RESTMapping(kind.GroupKind(), kind.Version)
	if err != nil {
		return nil, fmt.Errorf("cannot find out how the hub serves %s: %w", kind, err)
	}
	served := &unstructured.Unstructured{}
	served.SetGroupVersionKind(apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition"))
	name := mapping.Resource.GroupResource().String()
	if err := p.hub.Get(ctx, client.ObjectKey{Name: name}, served); err != nil {
		return nil, fmt.Errorf("cannot get the CRD %q: %w", name, err)
	}
	crd := &apiextensionsv1.CustomResourceDefinition{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(served.Object, crd); err != nil {
		return nil, fmt.Errorf("cannot decode the CRD %q: %w", name, err)
	}
	return func(atProvider map[string]any) map[string]any { return layouts.Shape(atProvider, crd, kind.Version) }, nil
}
