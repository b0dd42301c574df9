// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/masthead-dev/masthead/internal/cli/fleet"
)

// clustersAtOnce is the number of workload clusters queried in parallel.
const clustersAtOnce = 16

// unqueried is a cluster that could not be queried, and why.
type unqueried struct {
	Cluster string `json:"cluster"`
	Message string `json:"message"`
}

// each queries clusters in parallel, and returns those that could not be queried, with the reason. Clusters to which
// Masthead is not connected are among these without a request: each would cost a deadline. An error of ask is its
// cluster's reason, and the rest continue.
func each(ctx context.Context, hub *fleet.Hub, clusters []fleet.Cluster, ask func(context.Context, *fleet.Cluster, *fleet.ClusterClient) error) []unqueried {
	failed := make([]error, len(clusters))
	var g errgroup.Group
	g.SetLimit(clustersAtOnce)
	for i := range clusters {
		c := &clusters[i]
		if c.State != fleet.StateConnected {
			failed[i] = errors.New("Masthead is not connected to it: " + c.Reason)
			continue
		}
		g.Go(func() error {
			side, err := hub.Workload(ctx, c)
			if err == nil {
				err = ask(ctx, c, side)
			}
			failed[i] = err
			return nil
		})
	}
	_ = g.Wait()
	var out []unqueried
	for i, err := range failed {
		if err != nil {
			out = append(out, unqueried{Cluster: clusters[i].Name, Message: fleet.Explain(err)})
		}
	}
	return out
}

// collected is written by many goroutines.
type collected[T any] struct {
	mu    sync.Mutex
	items []T
}

func (c *collected[T]) add(items ...T) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.items = append(c.items, items...)
}

// reportUnqueried reports the clusters that could not be queried.
func (a *app) reportUnqueried(list []unqueried) {
	for _, u := range list {
		a.note("not queried: %s: %s", u.Cluster, u.Message)
	}
}

// noneFound reports that there is nothing to list, as far as could be seen.
func (a *app) noneFound(what string, list []unqueried) {
	if len(list) > 0 {
		a.note("There are no %s in what could be queried.", what)
		return
	}
	a.note("There are no %s.", what)
}

// chosen returns the clusters that the flag --cluster names, or all.
func chosen(clusters []fleet.Cluster, word string) ([]fleet.Cluster, error) {
	if word == "" {
		return clusters, nil
	}
	c, err := fleet.Find(clusters, word)
	if err != nil {
		return nil, err
	}
	return []fleet.Cluster{*c}, nil
}

// onlyNamespace returns the namespace given by -n. The context's is ignored where a command is about a fleet.
func (a *app) onlyNamespace() string {
	if a.kube.Namespace == nil {
		return ""
	}
	return *a.kube.Namespace
}
