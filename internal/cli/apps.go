// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appsv1alpha1 "github.com/masthead-dev/masthead/apis/apps/v1alpha1"
	"github.com/masthead-dev/masthead/internal/cli/fleet"
	"github.com/masthead-dev/masthead/internal/cli/look"
	"github.com/masthead-dev/masthead/internal/cli/terminal"
)

// appRow is an Application in a list.
type appRow struct {
	Cluster    string `json:"cluster"`
	Namespace  string `json:"namespace"`
	Name       string `json:"name"`
	Health     string `json:"health"`
	Ready      string `json:"ready"`
	Components string `json:"components,omitempty"`
	Message    string `json:"message,omitempty"`
}

// appsAnswer is the command's result.
type appsAnswer struct {
	Applications []appRow    `json:"applications"`
	NotAsked     []unqueried `json:"notAsked,omitempty"`
}

func newApps(a *app) *cobra.Command {
	var cluster string
	cmd := a.withOutput(&cobra.Command{
		Use:     "apps [NAME]",
		Aliases: []string{"app", "applications"},
		Short:   "Show the Applications of the fleet, or one of them as a tree down to its Pods",
		Long: `Show the Applications of all workload clusters, those that are not healthy first. With a name, show that Application as a
tree: its components, what they own, down to Pods, and the health of each.`,
		Example: `  # All Applications
  kubectl masthead apps

  # Those of w1 that are not healthy
  kubectl masthead apps --cluster w1 -o json | jq '.applications[] | select(.health != "Healthy")'

  # The Application shop of the namespace shop in w1, down to its Pods
  kubectl masthead apps shop -n shop --cluster w1`,
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, arguments []string) error {
			hub, err := a.hub()
			if err != nil {
				return err
			}
			if len(arguments) == 1 {
				return a.appTree(cmd.Context(), hub, cluster, arguments[0])
			}
			answer, err := a.apps(cmd.Context(), hub, cluster)
			if err != nil {
				return err
			}
			return a.print(answer, func(bool) error {
				a.reportUnqueried(answer.NotAsked)
				if len(answer.Applications) == 0 {
					a.noneFound("Applications", answer.NotAsked)
					return nil
				}
				return appTable(answer.Applications).Write(a.Streams.Out)
			})
		},
	})
	cmd.Flags().StringVar(&cluster, "cluster", "", "Only the Applications of this workload cluster")
	_ = cmd.RegisterFlagCompletionFunc("cluster", a.completeClusterFlag)
	return cmd
}

func (a *app) apps(ctx context.Context, hub *fleet.Hub, word string) (appsAnswer, error) {
	all, err := hub.Clusters(ctx)
	if err != nil {
		return appsAnswer{}, err
	}
	clusters, err := chosen(all, word)
	if err != nil {
		return appsAnswer{}, err
	}
	rows := collected[appRow]{items: []appRow{}}
	answer := appsAnswer{NotAsked: each(ctx, hub, clusters, func(ctx context.Context, c *fleet.Cluster, side *fleet.ClusterClient) error {
		list, err := side.List(ctx, look.ApplicationKind(), client.InNamespace(a.onlyNamespace()))
		if meta.IsNoMatchError(err) {
			return nil // The class does not have Applications there.
		}
		if err != nil {
			return fmt.Errorf("cannot list Applications: %w", err)
		}
		for _, obj := range list {
			app := &appsv1alpha1.Application{}
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(obj.Object, app); err != nil {
				rows.add(appRow{Cluster: c.Name, Namespace: obj.GetNamespace(), Name: obj.GetName(), Health: string(appsv1alpha1.HealthUnknown), Message: "Its status cannot be read."})
				continue
			}
			rows.add(newAppRow(c.Name, app))
		}
		return nil
	})}
	answer.Applications = rows.items
	slices.SortFunc(answer.Applications, func(a, b appRow) int {
		return cmp.Or(cmp.Compare(severity(b.Health), severity(a.Health)), cmp.Compare(a.Cluster, b.Cluster),
			cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	return answer, nil
}

// newAppRow returns the health of an Application. A status of an older generation is ignored.
func newAppRow(cluster string, app *appsv1alpha1.Application) appRow {
	row := appRow{
		Cluster: cluster, Namespace: app.Namespace, Name: app.Name, Health: string(appsv1alpha1.HealthUnknown), Ready: "Unknown",
		Message: "Masthead has not observed the latest change of the Application yet.",
	}
	if app.Status.ObservedGeneration != app.Generation {
		return row
	}
	row.Health, row.Message, row.Components = string(app.Status.Health), app.Status.Message, app.Status.ComponentsInstalled
	if c := meta.FindStatusCondition(app.Status.Conditions, appsv1alpha1.ConditionReady); c != nil {
		row.Ready = string(c.Status)
	}
	return row
}

// severity orders healths, with the highest number for the worst.
func severity(health string) int {
	return slices.Index([]string{
		string(appsv1alpha1.HealthHealthy), string(appsv1alpha1.HealthSuspended), string(appsv1alpha1.HealthProgressing),
		string(appsv1alpha1.HealthUnknown), string(appsv1alpha1.HealthMissing), string(appsv1alpha1.HealthDegraded),
	}, health)
}

func appTable(rows []appRow) terminal.Table {
	t := terminal.Table{Columns: []string{"CLUSTER", "NAMESPACE", "NAME", "HEALTH", "READY", "INSTALLED", "MESSAGE"}}
	for _, r := range rows {
		t.Rows = append(t.Rows, []string{r.Cluster, r.Namespace, r.Name, r.Health, r.Ready, r.Components, r.Message})
	}
	return t
}

// appTree shows one Application. Without --cluster it must exist in exactly one cluster.
func (a *app) appTree(ctx context.Context, hub *fleet.Hub, word, name string) error {
	clusters, err := hub.Clusters(ctx)
	if err != nil {
		return err
	}
	namespace, err := a.namespace()
	if err != nil {
		return err
	}
	if clusters, err = chosen(clusters, word); err != nil {
		return err
	}
	var found collected[look.Tree]
	failed := each(ctx, hub, clusters, func(ctx context.Context, _ *fleet.Cluster, side *fleet.ClusterClient) error {
		tree, err := look.ApplicationTree(ctx, side, namespace, name)
		if err == nil {
			found.add(*tree)
		}
		return client.IgnoreNotFound(err)
	})
	if len(found.items) != 1 {
		a.reportUnqueried(failed)
		if len(found.items) == 0 {
			return fmt.Errorf("there is no Application %s/%s in a cluster that could be queried", namespace, name)
		}
		return fmt.Errorf("%d clusters have an Application %s/%s: name one with --cluster", len(found.items), namespace, name)
	}
	colours := terminal.ColoursFor(a.Streams.Out, a.Getenv)
	return a.print(found.items[0], func(bool) error { return treeBranch(colours, found.items[0]).Write(a.Streams.Out) })
}

func treeBranch(colours terminal.Colours, t look.Tree) terminal.Branch {
	paint := colours.Middling
	switch appsv1alpha1.Health(t.Health) {
	case appsv1alpha1.HealthHealthy:
		paint = colours.Good
	case appsv1alpha1.HealthDegraded, appsv1alpha1.HealthMissing:
		paint = colours.Bad
	case appsv1alpha1.HealthProgressing, appsv1alpha1.HealthSuspended, appsv1alpha1.HealthUnknown:
	}
	b := terminal.Branch{Line: words(terminal.Clean(t.String()), paint(terminal.Clean(t.Health)), terminal.Clean(t.Reason), terminal.Clean(t.Message))}
	for _, part := range t.Parts {
		b.Branches = append(b.Branches, treeBranch(colours, part))
	}
	return b
}
