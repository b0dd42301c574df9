// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"strings"
	"time"

	"github.com/prometheus/common/model"
)

// scrapeInterval is the scrape interval of the end-to-end suite.
const scrapeInterval = 2 * time.Second

// panel is the part of a panel that is drawn.
type panel struct {
	Title       string
	FieldConfig struct{ Defaults struct{ Unit string } }
	Targets     []struct{ Expr, LegendFormat string }
}

// readPanel finds a panel of a dashboard by its title.
func readPanel(path, title string) (panel, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return panel{}, err
	}
	var dashboard struct{ Panels []panel }
	if err := json.Unmarshal(data, &dashboard); err != nil {
		return panel{}, fmt.Errorf("%s: %w", path, err)
	}
	for _, p := range dashboard.Panels {
		if p.Title == title && len(p.Targets) > 0 {
			return p, nil
		}
	}
	return panel{}, fmt.Errorf("%s has no panel %q", path, title)
}

// unit is the label of the vertical axis.
func (p panel) unit() string {
	units := map[string]string{"s": "seconds", "ops": "per second", "reqps": "requests per second", "bytes": "bytes"}
	return units[p.FieldConfig.Defaults.Unit]
}

// filled is a query about everything, as in a dashboard in which the user has not chosen anything.
func filled(expr string, step time.Duration) string {
	return strings.NewReplacer(
		"$__rate_interval", max(step+scrapeInterval, 4*scrapeInterval).String(),
		"$cluster_namespace", ".*", "$cluster_name", ".*", "$source", ".*",
	).Replace(expr)
}

// legend is the name of a series in the legend.
func legend(format string, series model.Metric) string {
	return regexp.MustCompile(`{{(\w+)}}`).ReplaceAllStringFunc(format, func(label string) string {
		return string(series[model.LabelName(strings.Trim(label, "{}"))])
	})
}
