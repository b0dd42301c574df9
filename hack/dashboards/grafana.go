// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package main

// A dashboard is a page of Grafana.
type dashboard struct {
	name, title, about string
	// perCluster adds the variables for the source, the namespace and the name of clusters.
	perCluster bool
	panels     []panel
}

// A panel is a diagram, a number or a table.
type panel struct {
	title, about string
	// kind is Grafana's type of the panel: timeseries, stat, table, or row, which begins a section.
	kind    string
	unit    string
	queries []query
	// width is the width in 24ths of the page; a third of the page if it is zero.
	width int
}

// A query has a legend, in which {{label}} is replaced with the value of a label.
type query struct {
	expr, legend string
}

const (
	columns      = 24
	defaultWidth = 8
	height       = 8
	// datasource is the variable with the Prometheus to query.
	datasource = "${datasource}"
)

func source() map[string]any { return map[string]any{"type": "prometheus", "uid": datasource} }

// json is the dashboard as Grafana imports it.
func (d dashboard) json() map[string]any {
	variables := []any{map[string]any{
		"name": "datasource", "label": "Data source", "type": "datasource", "query": "prometheus", "hide": 0,
	}}
	if d.perCluster {
		all := func(name, label, expr string) map[string]any {
			return map[string]any{
				"name": name, "label": label, "type": "query", "datasource": source(), "refresh": 2, "sort": 1,
				"includeAll": true, "multi": true, "allValue": ".*", "hide": 0,
				"query":   map[string]any{"query": expr, "refId": name},
				"current": map[string]any{"text": "All", "value": "$__all"},
			}
		}
		variables = append(variables,
			all("source", "Source", "label_values(masthead_cluster_connected, source)"),
			all("cluster_namespace", "Namespace", `label_values(masthead_cluster_connected{source=~"$source"}, cluster_namespace)`),
			all("cluster_name", "Cluster", `label_values(masthead_cluster_connected{source=~"$source", cluster_namespace=~"$cluster_namespace"}, cluster_name)`),
		)
	}
	return map[string]any{
		"uid": "masthead-" + d.name, "title": "Masthead / " + d.title, "description": d.about, "tags": []any{"masthead"},
		"schemaVersion": 39, "version": 1, "editable": false, "graphTooltip": 1, "refresh": "1m", "timezone": "",
		"time":       map[string]any{"from": "now-6h", "to": "now"},
		"templating": map[string]any{"list": variables},
		"panels":     d.layout(),
		"links": []any{map[string]any{
			"title": "Masthead", "type": "dashboards", "tags": []any{"masthead"}, "asDropdown": true, "keepTime": true, "includeVars": true,
		}},
	}
}

// layout places the panels from left to right, and in the next row when there is no space.
func (d dashboard) layout() []any {
	var out []any
	x, y := 0, 0
	for i, p := range d.panels {
		width := p.width
		if width == 0 {
			width = defaultWidth
		}
		tall := height
		if p.kind == "row" {
			width, tall = columns, 1
		}
		if x+width > columns {
			x, y = 0, y+height
		}
		out = append(out, p.json(i+1, map[string]any{"x": x, "y": y, "w": width, "h": tall}))
		x += width
		if p.kind == "row" {
			x, y = 0, y+1
		}
	}
	return out
}

func (p panel) json(id int, at map[string]any) map[string]any {
	if p.kind == "row" {
		return map[string]any{"id": id, "type": "row", "title": p.title, "collapsed": false, "gridPos": at, "panels": []any{}}
	}
	var targets []any
	for i, q := range p.queries {
		target := map[string]any{
			"refId": string(rune('A' + i)), "expr": q.expr, "legendFormat": q.legend, "datasource": source(), "editorMode": "code",
		}
		if p.kind == "table" {
			target["format"], target["instant"] = "table", true
		}
		if p.kind == "stat" {
			target["instant"] = true
		}
		targets = append(targets, target)
	}
	out := map[string]any{
		"id": id, "type": p.kind, "title": p.title, "description": p.about, "gridPos": at, "datasource": source(), "targets": targets,
		"fieldConfig": map[string]any{"defaults": map[string]any{"unit": p.unit}, "overrides": []any{}},
	}
	switch p.kind {
	case "timeseries":
		out["options"] = map[string]any{
			"legend":  map[string]any{"displayMode": "list", "placement": "bottom", "showLegend": true},
			"tooltip": map[string]any{"mode": "multi", "sort": "desc"},
		}
	case "stat":
		out["options"] = map[string]any{"reduceOptions": map[string]any{"calcs": []any{"lastNotNull"}}, "colorMode": "none"}
	case "table":
		out["transformations"] = []any{map[string]any{
			"id": "organize", "options": map[string]any{"excludeByName": map[string]any{"Time": true}},
		}}
	}
	return out
}
