// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package takeover_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/masthead-dev/masthead/internal/test/providercrds"
	"github.com/masthead-dev/masthead/internal/test/testenv"
	"github.com/masthead-dev/masthead/pkg/takeover"
)

// namespace is where the tests create their objects.
const namespace = "default"

// The API server of this package, which serves every kind that an import creates, and the CRDs of these kinds.
var (
	config   *rest.Config
	hub      client.Client
	versions = map[schema.GroupKind]string{}
	crds     []*apiextensionsv1.CustomResourceDefinition
)

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	fail := func(err error) int {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	ctx := context.Background()
	var err error
	if crds, err = providercrds.Load(ctx, providercrds.All()...); err != nil {
		return fail(err)
	}
	env, err := testenv.New(testenv.CRDs())
	if err != nil {
		return fail(err)
	}
	env.CRDInstallOptions.CRDs = crds
	defer func() { _ = env.Stop() }()
	if config, err = testenv.Start(env); err != nil {
		return fail(err)
	}
	config.QPS = -1
	if hub, err = client.New(config, client.Options{Scheme: clientgoscheme.Scheme}); err != nil {
		return fail(err)
	}
	for _, crd := range crds {
		versions[schema.GroupKind{Group: crd.Spec.Group, Kind: crd.Spec.Names.Kind}] = crd.Spec.Versions[0].Name
	}
	if err := install(ctx); err != nil {
		return fail(err)
	}
	return m.Run()
}

// install installs the policies and waits until they are enforced.
func install(ctx context.Context) error {
	policies, err := takeover.Policies()
	if err != nil {
		return err
	}
	for _, policy := range policies {
		for _, object := range []client.Object{policy.Policy, policy.Binding} {
			if err := client.IgnoreAlreadyExists(hub.Create(ctx, object)); err != nil {
				return err
			}
		}
	}
	return waitEnforced(ctx)
}

func waitEnforced(ctx context.Context) error {
	var last error
	err := testenv.Poll(ctx, testenv.Patience, func(ctx context.Context) (bool, error) {
		last = takeover.Verify(ctx, hub, namespace)
		if last != nil && !errors.Is(last, takeover.ErrNotEnforced) {
			return false, last
		}
		return last == nil, nil
	})
	if err != nil {
		return fmt.Errorf("%w: %w", err, last)
	}
	return nil
}
