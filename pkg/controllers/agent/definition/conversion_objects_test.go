// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package definition

import (
	"context"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/masthead-dev/masthead/internal/test/agenttest"
	"github.com/masthead-dev/masthead/internal/test/controllertest"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/index"
	"github.com/masthead-dev/masthead/pkg/crossplane"
	"github.com/masthead-dev/masthead/pkg/kindwatch"
)

func TestTheEndOfTheLastObjectIsNoticedWhileObjectsAreLookedFor(t *testing.T) {
	crd := agenttest.Parse(t, `{'apiVersion': 'apiextensions.k8s.io/v1', 'kind': 'CustomResourceDefinition', 'metadata': {'name': 'mysqlinstances.acmeco.org'}, 'spec': {
		'group': 'acmeco.org', 'scope': 'Namespaced', 'names': {'plural': 'mysqlinstances', 'kind': 'MySQLInstance'},
		'versions': [{'name': 'v1alpha1', 'served': true, 'storage': true}]}}`)
	noticed := false
	w := index.NewCluster(index.Connection{})
	w.Reader = interceptor.NewClient(fake.NewClientBuilder().WithScheme(controllertest.Scheme()).Build(), interceptor.Funcs{
		List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error {
			noticed = w.Definition(crd.GetName()).Unoffered
			return nil
		},
	})
	p := crossplane.Publication{Kind: kindwatch.Kind{GroupVersionKind: schema.GroupVersionKind{Version: "v1beta1"}}}
	if _, err := (&Reconciler{}).wouldConvert(t.Context(), w, crd, &wantedDefinition{converts: true}, p); err != nil {
		t.Fatal(err)
	}
	if !noticed {
		t.Error("want an object that goes from now on to be a reason to look again")
	}
}
