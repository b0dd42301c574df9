// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package monitoring

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"
)

// A Query is a query that Grafana sends to Prometheus.
type Query struct {
	// Panel is where the query is: the dashboard, a slash, and the title of the panel or the name of the variable.
	Panel string
	// Expr is the expression, without variables.
	Expr string
}

// page is the part of a dashboard that is read.
type page struct {
	Panels []struct {
		Title   string
		Targets []struct{ Expr string }
	}
	Templating struct{ List []choice }
}

// choice is a variable of a dashboard, whose value users choose.
type choice struct {
	Name, Type string
	// Query is text for a data source, and an object otherwise.
	Query    json.RawMessage
	AllValue string
	Current  struct{ Value any }
}

// Queries returns the queries of all panels and variables of the dashboards in a folder, as Grafana sends them when a
// page is opened and the user has not chosen anything yet. The step is the distance between two points.
func Queries(folder string, step time.Duration) ([]Query, error) {
	files, err := filepath.Glob(filepath.Join(folder, "*.json"))
	if err != nil {
		return nil, err
	}
	var all []Query
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("cannot read a dashboard: %w", err)
		}
		name := strings.TrimSuffix(filepath.Base(file), ".json")
		queries, err := pageQueries(name, data, step)
		if err != nil {
			return nil, fmt.Errorf("the dashboard %q: %w", name, err)
		}
		all = append(all, queries...)
	}
	return all, nil
}

func pageQueries(name string, data []byte, step time.Duration) ([]Query, error) {
	var p page
	if err := json.Unmarshal(data, &p); err != nil {
		return nil, err
	}
	values := map[string]string{"__rate_interval": rateInterval(step).String()}
	var queries []Query
	for _, c := range p.Templating.List {
		if c.Type != "query" {
			continue // The data source. There is only one.
		}
		expr, err := c.expr()
		if err != nil {
			return nil, err
		}
		// A variable can use those before it.
		if expr, err = fill(expr, values); err != nil {
			return nil, err
		}
		queries = append(queries, Query{Panel: name + "/$" + c.Name, Expr: expr})
		if values[c.Name], err = c.value(); err != nil {
			return nil, err
		}
	}
	for _, panel := range p.Panels {
		for _, target := range panel.Targets {
			expr, err := fill(target.Expr, values)
			if err != nil {
				return nil, err
			}
			queries = append(queries, Query{Panel: name + "/" + panel.Title, Expr: expr})
		}
	}
	return queries, nil
}

// rateInterval is the value that Grafana gives $__rate_interval.
func rateInterval(step time.Duration) time.Duration {
	return max(step+ScrapeInterval, 4*ScrapeInterval)
}

// value is the value that Grafana substitutes for a variable.
func (c choice) value() (string, error) {
	value, _ := c.Current.Value.(string)
	if value == "$__all" {
		value = c.AllValue
	}
	if value != "" {
		return value, nil
	}
	return "", fmt.Errorf("the variable %q has no value to begin with", c.Name)
}

// expr is a query with a series for each value of the variable.
func (c choice) expr() (string, error) {
	var query struct{ Query string }
	if err := json.Unmarshal(c.Query, &query); err != nil {
		return "", fmt.Errorf("the variable %q has no query: %w", c.Name, err)
	}
	m := regexp.MustCompile(`^label_values\((.*), (\w+)\)$`).FindStringSubmatch(query.Query)
	if m == nil {
		return "", fmt.Errorf("the variable %q does not ask for the values of a label: %q", c.Name, query.Query)
	}
	return "count by (" + m[2] + ") (" + m[1] + ")", nil
}

// fill substitutes values for $name and ${name}.
func fill(expr string, values map[string]string) (string, error) {
	var unknown []string
	filled := regexp.MustCompile(`\$(\w+|\{\w+\})`).ReplaceAllStringFunc(expr, func(variable string) string {
		value, ok := values[strings.Trim(variable, "${}")]
		if !ok {
			unknown = append(unknown, variable)
		}
		return value
	})
	if len(unknown) > 0 {
		return "", fmt.Errorf("there is no variable %s: %q", strings.Join(unknown, ", "), expr)
	}
	return filled, nil
}
