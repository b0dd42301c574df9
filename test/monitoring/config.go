// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package monitoring

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"sigs.k8s.io/yaml"

	"github.com/masthead-dev/masthead/test/harness"
)

// The files of the configuration refer to each other without a folder.
const (
	configFile  = "prometheus.yaml"
	rulesFile   = "rules.yaml"
	targetsFile = "targets.json"
)

// job and namespace have the values that a ServiceMonitor of the chart gives them.
const (
	job       = "masthead-metrics"
	namespace = "masthead-system"
)

// configure writes the configuration and the rules.
func configure(o Options) error {
	if err := os.MkdirAll(o.Folder, 0o700); err != nil {
		return fmt.Errorf("cannot create the folder of Prometheus: %w", err)
	}
	interval := ScrapeInterval.String()
	config, err := yaml.Marshal(map[string]any{
		"global":     map[string]any{"scrape_interval": interval, "scrape_timeout": interval, "evaluation_interval": interval},
		"rule_files": []string{rulesFile},
		"scrape_configs": []any{map[string]any{
			"job_name":        job,
			"file_sd_configs": []any{map[string]any{"files": []string{targetsFile}, "refresh_interval": interval}},
		}},
	})
	if err != nil {
		return err
	}
	resource, err := os.ReadFile(o.Rules)
	if err != nil {
		return fmt.Errorf("cannot read the rules: %w", err)
	}
	rules, err := ruleGroups(resource)
	if err != nil {
		return fmt.Errorf("%s: %w", o.Rules, err)
	}
	for name, data := range map[string][]byte{configFile: config, rulesFile: rules} {
		if err := os.WriteFile(filepath.Join(o.Folder, name), data, 0o600); err != nil {
			return fmt.Errorf("cannot write the configuration of Prometheus: %w", err)
		}
	}
	return nil
}

// ruleGroups returns the spec of a PrometheusRule, which Prometheus can load.
func ruleGroups(resource []byte) ([]byte, error) {
	var rule struct {
		Spec map[string]any `json:"spec"`
	}
	if err := yaml.Unmarshal(resource, &rule); err != nil {
		return nil, fmt.Errorf("cannot read the PrometheusRule: %w", err)
	}
	return yaml.Marshal(rule.Spec)
}

// Scrape makes Prometheus scrape these managers from now on, and no others. Each has the labels of its own Pod, as
// every start of a manager has in a cluster. Prometheus takes over new targets every five seconds.
func (p *Prometheus) Scrape(managers ...*harness.Manager) error {
	type group struct {
		Targets []string          `json:"targets"`
		Labels  map[string]string `json:"labels"`
	}
	groups := make([]group, 0, len(managers))
	for _, m := range managers {
		groups = append(groups, group{
			Targets: []string{m.MetricsAddress()},
			Labels:  map[string]string{"namespace": namespace, "pod": fmt.Sprintf("masthead-%d", m.PID())},
		})
	}
	data, err := json.Marshal(groups)
	if err != nil {
		return err
	}
	// Renamed, so that Prometheus never reads half of it.
	whole := p.targets + ".new"
	if err := os.WriteFile(whole, data, 0o600); err != nil {
		return fmt.Errorf("cannot write the targets of Prometheus: %w", err)
	}
	return os.Rename(whole, p.targets)
}
