// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"fmt"
	"slices"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/masthead-dev/masthead/internal/cli/fleet"
	"github.com/masthead-dev/masthead/internal/cli/requirements"
	"github.com/masthead-dev/masthead/internal/cli/terminal"
	"github.com/masthead-dev/masthead/pkg/crossplane"
)

// claimsAnswer is the command's result.
type claimsAnswer struct {
	Claims   []requirements.Row `json:"claims"`
	NotAsked []unqueried        `json:"notAsked,omitempty"`
}

func newClaims(a *app) *cobra.Command {
	var cluster string
	cmd := a.withOutput(&cobra.Command{
		Use:     "claims",
		Aliases: []string{"claim"},
		Short:   "Show the claims of the fleet, where each is in the hub, and who holds a taken name",
		Long: `Show the claims, and namespaced composites, of all workload clusters: where each one is in the hub, whether the hub holds
what it says, and whether it is ready. If the name of a claim is taken, the holder is shown. Objects of the hub that come
from a cluster which has no such claim are shown, too. Of a cluster that cannot be queried, only the hub's objects are known.`,
		Example: `  # All claims
  kubectl masthead claims

  # Those of the namespace shop in w1
  kubectl masthead claims --cluster w1 -n shop

  # Those whose name is taken, and by whom
  kubectl masthead claims -o json | jq '.claims[] | select(.state == "Conflict") | {cluster, namespace, name, holder}'`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			hub, err := a.hub()
			if err != nil {
				return err
			}
			answer, err := a.claims(cmd.Context(), hub, cluster)
			if err != nil {
				return err
			}
			return a.print(answer, func(wide bool) error {
				a.reportUnqueried(answer.NotAsked)
				if len(answer.Claims) == 0 {
					a.noneFound("claims", answer.NotAsked)
					return nil
				}
				return claimTable(answer.Claims, wide).Write(a.Streams.Out)
			})
		},
	})
	cmd.Flags().StringVar(&cluster, "cluster", "", "Only the claims of this workload cluster")
	_ = cmd.RegisterFlagCompletionFunc("cluster", a.completeClusterFlag)
	return cmd
}

func (a *app) claims(ctx context.Context, hub *fleet.Hub, word string) (claimsAnswer, error) {
	all, err := hub.Clusters(ctx)
	if err != nil {
		return claimsAnswer{}, err
	}
	clusters, err := chosen(all, word)
	if err != nil {
		return claimsAnswer{}, err
	}
	facts := requirements.Facts{Clusters: all, Queried: map[string]bool{}}
	kinds, err := published(ctx, hub, &facts)
	if err != nil {
		return claimsAnswer{}, err
	}
	var claims collected[requirements.Claim]
	var queried collected[string]
	answer := claimsAnswer{Claims: []requirements.Row{}, NotAsked: each(ctx, hub, clusters, func(ctx context.Context, c *fleet.Cluster, side *fleet.ClusterClient) error {
		found, err := a.claimsIn(ctx, side, kinds)
		for _, obj := range found {
			claims.add(requirements.Claim{Cluster: c.Name, Object: obj})
		}
		if err == nil {
			queried.add(c.Name)
		}
		return err
	})}
	facts.Claims = claims.items
	for _, name := range queried.items {
		facts.Queried[name] = true
	}
	for _, row := range requirements.Rows(facts) {
		if (word == "" || row.Cluster == clusters[0].Name) && (a.onlyNamespace() == "" || row.Namespace == a.onlyNamespace()) {
			answer.Claims = append(answer.Claims, row)
		}
	}
	return answer, nil
}

// claimsIn returns the claims of these kinds in a cluster.
func (a *app) claimsIn(
	ctx context.Context, side *fleet.ClusterClient, kinds []crossplane.Publication,
) ([]*unstructured.Unstructured, error) {
	var claims []*unstructured.Unstructured
	for _, k := range kinds {
		list, err := side.List(ctx, k.Kind.GroupVersionKind, client.InNamespace(a.onlyNamespace()))
		if meta.IsNoMatchError(err) {
			continue // The class does not offer the kind, or the cluster refused it.
		}
		if err != nil {
			return claims, fmt.Errorf("cannot list %s: %w", k.Kind.GroupResource(), err)
		}
		claims = append(claims, list...)
	}
	return claims, nil
}

// published returns the kinds that the hub offers, whose objects in the hub become facts.
func published(ctx context.Context, hub *fleet.Hub, facts *requirements.Facts) ([]crossplane.Publication, error) {
	xrds, err := hub.List(ctx, crossplane.XRDKind.GroupVersionKind)
	if meta.IsNoMatchError(err) {
		return nil, fmt.Errorf("the hub has no CompositeResourceDefinitions: is Crossplane installed? (%w)", fleet.ErrNoSuchKind)
	}
	if err != nil {
		return nil, fmt.Errorf("cannot list the CompositeResourceDefinitions of the hub: %w", err)
	}
	var kinds []crossplane.Publication
	for _, xrd := range xrds {
		publication, ok := crossplane.ParsePublication(xrd)
		if !ok || slices.ContainsFunc(kinds, func(k crossplane.Publication) bool { return k.CrdName() == publication.CrdName() }) {
			continue
		}
		objects, err := hub.List(ctx, publication.Kind.GroupVersionKind)
		if err != nil {
			return nil, fmt.Errorf("cannot list %s in the hub: %w", publication.Kind.GroupResource(), err)
		}
		facts.Hub = append(facts.Hub, objects...)
		kinds = append(kinds, publication)
	}
	return kinds, nil
}

func claimTable(rows []requirements.Row, wide bool) terminal.Table {
	t := terminal.Table{Columns: []string{"CLUSTER", "NAMESPACE", "KIND", "NAME", "HUB", "STATE", "READY", "HELD BY"}}
	if wide {
		t.Columns = append(t.Columns, "MESSAGE")
	}
	for _, r := range rows {
		row := []string{r.Cluster, r.Namespace, r.Kind, r.Name, r.Hub, r.State, r.Ready, r.Holder}
		if wide {
			row = append(row, r.Message)
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}
