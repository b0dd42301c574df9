// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/internal/cli/terminal"
)

// importRow is a ClusterImport in a list.
type importRow struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	Cloud     string `json:"cloud"`
	Region    string `json:"region,omitempty"`
	Version   string `json:"version,omitempty"`
	Pools     string `json:"pools,omitempty"`
	Access    string `json:"access,omitempty"`
	Enroll    string `json:"enroll,omitempty"`
	Ready     string `json:"ready"`
	Reason    string `json:"reason,omitempty"`
	Message   string `json:"message,omitempty"`
	Lossy     int    `json:"lossyFields"`
}

func newImports(a *app) *cobra.Command {
	return a.withOutput(&cobra.Command{
		Use:     "imports",
		Aliases: []string{"import"},
		Short:   "Show the imported clusters, and the progress of each import",
		Long: `Show the ClusterImports of the hub: what was observed of each cluster, the progress of the import, and what the credentials
may do there. kubectl masthead why import NAME explains what an import waits for.`,
		Example: `  # All imports
  kubectl masthead imports

  # Those of the namespace clouds, with messages
  kubectl masthead imports -n clouds -o wide`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			hub, err := a.hub()
			if err != nil {
				return err
			}
			list := &fleetv1alpha1.ClusterImportList{}
			if err := hub.Client().List(cmd.Context(), list, client.InNamespace(a.onlyNamespace())); err != nil {
				return fmt.Errorf("cannot list the ClusterImports of the hub: %w", err)
			}
			rows := make([]importRow, 0, len(list.Items))
			for i := range list.Items {
				rows = append(rows, newImportRow(&list.Items[i]))
			}
			return a.print(rows, func(wide bool) error {
				if len(rows) == 0 {
					a.noneFound("ClusterImports", nil)
					return nil
				}
				return importTable(rows, wide).Write(a.Streams.Out)
			})
		},
	})
}

func newImportRow(i *fleetv1alpha1.ClusterImport) importRow {
	row := importRow{
		Namespace: i.Namespace, Name: i.Name, Cloud: string(i.Spec.Cloud()), Enroll: i.Spec.Enroll, Ready: "Unknown", Lossy: len(i.Status.Lossy),
		Message: "It has not been reconciled yet. Does the manager run? With --imports=false it reconciles none.",
	}
	if o := i.Status.Observed; o != nil {
		row.Region, row.Version, row.Pools = o.Region, o.Version, o.NodePools
	}
	if c := meta.FindStatusCondition(i.Status.Conditions, fleetv1alpha1.ConditionWorkloadAccess); c != nil {
		row.Access = c.Reason
	}
	if c := meta.FindStatusCondition(i.Status.Conditions, fleetv1alpha1.ConditionReady); c != nil {
		row.Ready, row.Reason, row.Message = string(c.Status), c.Reason, c.Message
	}
	return row
}

func importTable(rows []importRow, wide bool) terminal.Table {
	t := terminal.Table{Columns: []string{"NAMESPACE", "NAME", "CLOUD", "REGION", "VERSION", "POOLS", "ACCESS", "READY", "REASON"}}
	if wide {
		t.Columns = append(t.Columns, "ENROLL", "MESSAGE")
	}
	for _, r := range rows {
		row := []string{r.Namespace, r.Name, r.Cloud, r.Region, r.Version, r.Pools, r.Access, r.Ready, r.Reason}
		if wide {
			row = append(row, r.Enroll, r.Message)
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}
