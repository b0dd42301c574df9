// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package localfleet

import (
	"context"
	"path/filepath"
	"strings"

	"golang.org/x/sync/errgroup"
)

// sources are the paths of the files that a fleet takes from the source of the modules that the repository pins.
type sources struct {
	crossplaneCRDs, clusterAPICRDs, inventoryCRDs, kwokStages []string
	kubernetesVersion                                         string
}

func findSources(ctx context.Context, repository string, state *fleetState) (sources, error) {
	var s sources
	wanted := map[*[]string]moduleFiles{&s.clusterAPICRDs: clusterAPICRDs, &s.inventoryCRDs: inventoryCRDs}
	if state.WithCrossplane {
		wanted[&s.crossplaneCRDs] = crossplaneCRDs
	}
	if state.WithKwok {
		wanted[&s.kwokStages] = kwokStages
	}
	group, ctx := errgroup.WithContext(ctx)
	for into, files := range wanted {
		group.Go(func() error {
			paths, err := files.find(ctx, repository)
			*into = paths
			return err
		})
	}
	group.Go(func() error {
		version, err := goCommand(ctx, filepath.Join(repository, "hack/controlplane/kubernetes"), "list", "-m", "-f", "{{.Version}}", "k8s.io/kubernetes")
		s.kubernetesVersion = strings.TrimSpace(version)
		return err
	})
	return s, group.Wait()
}
