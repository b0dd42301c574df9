// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package monitoring

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/prometheus/client_golang/api"
	v1 "github.com/prometheus/client_golang/api/prometheus/v1"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/masthead-dev/masthead/test/bench/process"
	"github.com/masthead-dev/masthead/test/harness"
)

// ScrapeInterval is how often a manager is scraped and the rules are evaluated. It is short, so that states that last
// only seconds in a test are seen.
const ScrapeInterval = 2 * time.Second

// Options are the options of a Prometheus.
type Options struct {
	// Prometheus and Promtool are the programs.
	Prometheus, Promtool string
	// Folder takes the configuration and the data. The log is beside it.
	Folder string
	// Rules is a file with a PrometheusRule.
	Rules string
}

// Prometheus is a running server. It scrapes nothing until Scrape is called with managers.
type Prometheus struct {
	v1.API

	// URL is its address.
	URL string
	// LogPath is the file to which it logs.
	LogPath string
	// Checked is what promtool printed about its configuration and its rules.
	Checked string

	targets string
	process *process.Process
}

// Start starts a Prometheus and waits until it is ready. It dies with the process that started it.
func Start(ctx context.Context, o Options) (*Prometheus, error) {
	address, err := harness.FreeAddress()
	if err != nil {
		return nil, err
	}
	p := &Prometheus{URL: "http://" + address, LogPath: o.Folder + ".log", targets: filepath.Join(o.Folder, targetsFile)}
	if err := configure(o); err != nil {
		return nil, err
	}
	if err := p.Scrape(); err != nil {
		return nil, err
	}
	config := filepath.Join(o.Folder, configFile)
	checked, err := exec.CommandContext(ctx, o.Promtool, "check", "config", config).CombinedOutput()
	if err != nil {
		return nil, fmt.Errorf("promtool refuses the configuration: %w\n%s", err, checked)
	}
	p.Checked = string(checked)
	client, err := api.NewClient(api.Config{Address: p.URL})
	if err != nil {
		return nil, fmt.Errorf("cannot create a client of Prometheus: %w", err)
	}
	p.API = v1.NewAPI(client)
	p.process, err = process.Start(p.LogPath, o.Prometheus, "--config.file="+config,
		"--storage.tsdb.path="+filepath.Join(o.Folder, "data"), "--web.listen-address="+address)
	if err != nil {
		return nil, err
	}
	if err := p.waitReady(ctx); err != nil {
		return nil, errors.Join(err, p.Kill())
	}
	return p, nil
}

func (p *Prometheus) waitReady(ctx context.Context) error {
	err := wait.PollUntilContextCancel(ctx, 50*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		select {
		case <-p.process.Exited():
			log, err := os.ReadFile(p.LogPath)
			return false, errors.Join(fmt.Errorf("it has exited:\n%s", log), err)
		default:
		}
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, p.URL+"/-/ready", nil)
		if err != nil {
			return false, err
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			return false, nil //nolint:nilerr // It does not listen yet.
		}
		_ = resp.Body.Close()
		return resp.StatusCode == http.StatusOK, nil
	})
	if err != nil {
		return fmt.Errorf("Prometheus does not become ready: %w", err)
	}
	return nil
}

// Kill ends the process, and returns when it has ended.
func (p *Prometheus) Kill() error { return p.process.Kill() }
