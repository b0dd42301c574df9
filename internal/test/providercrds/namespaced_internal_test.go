// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package providercrds

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/masthead-dev/masthead/internal/test/testenv"
)

// TestNamespacedIsMadeAsProvidersDo compares what is made with the CRDs of provider-aws, which has both groups.
func TestNamespacedIsMadeAsProvidersDo(t *testing.T) {
	t.Parallel()
	for _, c := range append(modernManagedResources(), providerConfigs()...) {
		if !c.isModern() || c.source != providerAWS {
			continue
		}
		folder, err := testenv.PinnedCRDs(t.Context(), c.source.pin, c.source.module, c.source.folder)
		if err != nil {
			t.Fatal(err)
		}
		provider, err := c.read(folder, c)
		if err != nil {
			t.Fatal(err)
		}
		made, err := c.read(folder, c.legacy())
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(provider.Spec, made.Spec); diff != "" {
			t.Errorf("%s: -the provider's, +made:\n%s", provider.Name, diff)
		}
	}
}
