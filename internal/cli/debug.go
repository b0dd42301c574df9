// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/printers"

	"github.com/masthead-dev/masthead/internal/cli/dump"
	"github.com/masthead-dev/masthead/internal/cli/fleet"
	"github.com/masthead-dev/masthead/internal/version"
)

func newDebug(a *app) *cobra.Command {
	parent := &cobra.Command{
		Use:     "debug",
		Short:   "Collect information for troubleshooting Masthead",
		Long:    "Collect the information that others need to find out remotely why Masthead does not work.",
		Example: `  kubectl masthead debug dump`,
	}
	var d dumping
	cmd := &cobra.Command{
		Use:   "dump",
		Short: "Write what is known of the fleet to an archive, without Secrets",
		Long: `Write to an archive what a maintainer needs to look at a broken fleet: Masthead's kinds, the objects that enrol clusters,
what Crossplane publishes, where claims are, events, the manager's Pods and their logs, versions. Only the hub is queried.

No data of a Secret and no kubeconfig is read. Values of environment variables, parameters of claims, and what looks like
credentials in logs and messages are left out. Names and addresses are included: review the archive before you share it.`,
		Example: `  # masthead-dump-<time>.tar.gz in this folder
  kubectl masthead debug dump

  # A folder
  kubectl masthead debug dump --output-directory dump

  # To another machine
  kubectl masthead debug dump --output-file - | ssh bastion 'cat >dump.tar.gz'`,
		Args:              noArguments,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.dump(cmd.Context(), d)
		},
	}
	cmd.Flags().StringVar(&d.file, "output-file", "", "The archive to write, or - for the standard output (default masthead-dump-<time>.tar.gz)")
	cmd.Flags().StringVar(&d.folder, "output-directory", "", "Write a folder instead of an archive")
	cmd.Flags().Int64Var(&d.tail, "tail", 10_000, "How many lines of each log, from its end; 0 leaves logs out")
	parent.AddCommand(cmd)
	return parent
}

// dumping holds the flags of the command.
type dumping struct {
	file, folder string
	tail         int64
}

// stdout is the file name of the standard output.
const stdout = "-"

func (a *app) dump(ctx context.Context, d dumping) (err error) {
	switch {
	case d.file != "" && d.folder != "":
		return misused("--output-file and --output-directory are mutually exclusive")
	case d.tail < 0:
		return misused("--tail must be at least 0")
	case d.file == stdout && printers.IsTerminal(a.Streams.Out):
		return misused("an archive cannot be written to a terminal: redirect the output, or name a file")
	}
	hub, err := a.hub()
	if err != nil {
		return err
	}
	clusters, err := hub.Clusters(ctx)
	if err != nil {
		a.note("not collected: the clusters of the fleet: %v", err)
		clusters = []fleet.Cluster{}
	}
	head := dump.Head{Time: a.Clock.Now().UTC(), PluginVersion: version.Version, Clusters: clusters}
	if head.HubVersion, err = hub.Version(); err != nil {
		return err // Nothing else would be answered, either.
	}
	name := "masthead-dump-" + head.Time.Format("20060102-150405")
	archive, where, undo, err := a.archive(d, name, head)
	if err != nil {
		return err
	}
	a.note("collecting ...")
	index, err := dump.Collect(ctx, hub, archive, dump.Options{Tail: d.tail, Head: head, Metrics: func(ctx context.Context) (io.ReadCloser, error) {
		scrape, err := scraper(ctx, hub, "")
		if err != nil {
			return nil, err
		}
		return scrape()
	}})
	if closed := archive.Close(); err == nil && closed != nil {
		err = fmt.Errorf("cannot finish %s: %w", where, closed)
	}
	if err != nil {
		undo()
		return err
	}
	for _, m := range index.NotLookedAt {
		a.note("not collected: %s: %s", m.What, m.Message)
	}
	a.note("Wrote %s. It contains no data of Secrets, but names and addresses: review it before you share it.", where)
	return nil
}

// archive opens the archive that the flags name. undo removes an unfinished file.
func (a *app) archive(d dumping, name string, head dump.Head) (_ dump.Archive, where string, undo func(), err error) {
	undo = func() {}
	if d.folder != "" {
		archive, err := dump.NewFolder(d.folder)
		return archive, d.folder, undo, err
	}
	if d.file == stdout {
		return dump.NewTar(a.Streams.Out, name, head.Time), "the standard output", undo, nil
	}
	where = d.file
	if where == "" {
		where = name + ".tar.gz"
	}
	file, err := os.OpenFile(filepath.Clean(where), os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return nil, where, undo, fmt.Errorf("cannot write the archive: %w", err)
	}
	undo = func() { _ = os.Remove(file.Name()) }
	return &closing{Archive: dump.NewTar(file, name, head.Time), file: file}, where, undo, nil
}

// closing is an archive in a file.
type closing struct {
	dump.Archive

	file io.Closer
}

// Close implements dump.Archive.
func (c *closing) Close() error {
	err := c.Archive.Close()
	if closed := c.file.Close(); err == nil {
		err = closed
	}
	return err
}
