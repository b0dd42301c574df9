// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

// Command draw draws panels of the dashboards from the data that a Prometheus has left in a folder:
//
//	go run ./draw --data=FOLDER --out=FOLDER fleet-overview "Clusters by state" [DASHBOARD PANEL...]
//
// It starts a Prometheus with a copy of the data, sends the queries that Grafana would send, and draws lines. It is not
// Grafana, and does not show what a panel looks like there.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

func main() {
	var o options
	flag.StringVar(&o.prometheus, "prometheus", "prometheus", "the `program`")
	flag.StringVar(&o.data, "data", "", "the `folder` with the data of a Prometheus that has ended")
	flag.StringVar(&o.dashboards, "dashboards", "../../../config/grafana", "the `folder` with the dashboards")
	flag.StringVar(&o.out, "out", ".", "the `folder` that the pictures go to")
	flag.Parse()
	if flag.NArg() == 0 || flag.NArg()%2 != 0 || o.data == "" {
		flag.Usage()
		os.Exit(2)
	}
	if err := run(context.Background(), o, flag.Args()); err != nil {
		_, _ = fmt.Fprintln(os.Stderr, "draw:", err)
		os.Exit(1)
	}
}

type options struct{ prometheus, data, dashboards, out string }

func run(ctx context.Context, o options, names []string) (err error) {
	server, err := start(ctx, o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, server.stop()) }()
	over, err := server.whole(ctx)
	if err != nil {
		return err
	}
	for i := 0; i < len(names); i += 2 {
		page, title := names[i], names[i+1]
		p, err := readPanel(filepath.Join(o.dashboards, page+".json"), title)
		if err != nil {
			return err
		}
		lines, err := server.lines(ctx, p, over)
		if err != nil {
			return err
		}
		path := filepath.Join(o.out, page+"-"+fileName(title)+".png")
		if err := draw(path, title, p.unit(), over, lines); err != nil {
			return fmt.Errorf("cannot draw %q: %w", title, err)
		}
		_, _ = fmt.Println(path)
	}
	return nil
}

func fileName(title string) string {
	return regexp.MustCompile(`[^a-z0-9]+`).ReplaceAllString(strings.ToLower(title), "-")
}
