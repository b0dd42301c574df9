// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package main

// Parts of queries. chosen are the label matchers that use the variables, and at is the selector with only these. A
// cluster is identified by its three labels.
const (
	chosen  = `source=~"$source", cluster_namespace=~"$cluster_namespace", cluster_name=~"$cluster_name"`
	at      = `{` + chosen + `}`
	cluster = `cluster_namespace, cluster_name, source`
	legend  = "{{source}}/{{cluster_namespace}}/{{cluster_name}}"
)

// top queries the ten clusters with the highest values: a graph with a line for each of a thousand is illegible.
func top(expr string) query { return query{"topk(10, " + expr + ")", legend} }

// bottom queries the ten clusters with the lowest values.
func bottom(expr string) query { return query{"bottomk(10, " + expr + ")", legend} }

func section(title string) panel { return panel{title: title, kind: "row"} }

func number(title, about, expr string) panel {
	return panel{title: title, about: about, kind: "stat", unit: "short", width: 4, queries: []query{{expr: expr}}}
}

func lines(title, about, unit string, queries ...query) panel {
	return panel{title: title, about: about, kind: "timeseries", unit: unit, queries: queries}
}

func waiting(title, controller string) panel {
	return lines(title, "They are due, and wait for a worker or for the connection. Of the ten clusters with the most.", "short",
		top(`max by (`+cluster+`) (masthead_queue_depth{`+chosen+`, controller="`+controller+`"})`))
}

func table(title, about, expr string) panel {
	return panel{title: title, about: about, kind: "table", unit: "short", width: 12, queries: []query{{expr: expr}}}
}

// dashboards returns all dashboards.
func dashboards() []dashboard {
	return []dashboard{fleetOverview(), clusterDetail(), requirements(), applications(), imports(), references(), internals()}
}

func fleetOverview() dashboard {
	return dashboard{
		name: "fleet-overview", title: "Fleet overview", perCluster: true,
		about: "Which clusters are connected, what holds back the others, and what needs a change by a user.",
		panels: []panel{
			number("Clusters", "Enrolled clusters.", `count(masthead:cluster_connected:max`+at+`)`),
			number("Connected", "Clusters whose last probe succeeded.", `sum(masthead:cluster_connected:max`+at+`)`),
			number("Claims", "Claims of all clusters.", `sum(masthead:agent_requirements:max`+at+`)`),
			number("Claims that wait", "Claims that are not synchronised.",
				`sum(masthead:agent_requirements:max{`+chosen+`, reason!="Synced"}) or vector(0)`),
			number("Applications", "Applications of all clusters.", `sum(masthead:applications:max`+at+`)`),
			number("Broken Applications", "Applications that are Degraded or Missing.",
				`sum(masthead:applications:max{`+chosen+`, health=~"Degraded|Missing"}) or vector(0)`),
			section("Connections"),
			lines("Clusters by state", "How many clusters are in each state of their connection.", "short",
				query{`sum by (state) (max by (` + cluster + `, state) (masthead_cluster_state` + at + `))`, "{{state}}"}),
			lines("Held enrolments", "Why enrolled clusters are not connected, without a fault of their API servers.", "short",
				query{`sum by (reason) (max by (` + cluster + `, reason) (masthead_cluster_held` + at + `))`, "{{reason}}"}),
			lines("Failures", "Probes and attempts to connect that failed.", "ops",
				query{`sum by (reason) (rate(masthead_cluster_failures_total` + at + `[$__rate_interval]))`, "{{reason}}"}),
			table("Clusters that are not connected", "Their last probe failed, or something holds them back.",
				`masthead:cluster_connected:max`+at+` == 0`),
			table("Clusters that come and go", "Connections that were lost in a day.",
				`topk(10, sum by (`+cluster+`) (increase(masthead_cluster_connects_total{`+chosen+`, cause="probe"}[1d]))) > 0`),
			section("Work"),
			lines("Claims to the hub, 99 %", "Of the ten slowest clusters.", "s",
				top(`masthead:agent_claim_to_hub_seconds:p99_5m`+at)),
			lines("Hub to status, 99 %", "Of the ten slowest clusters.", "s",
				top(`masthead:agent_hub_to_status_seconds:p99_5m`+at)),
			lines("Requests", "Of the ten clusters with the most.", "reqps",
				top(`sum by (`+cluster+`) (masthead:cluster_requests:rate5m`+at+`)`)),
		},
	}
}

func clusterDetail() dashboard {
	return dashboard{
		name: "cluster-detail", title: "Cluster detail", perCluster: true,
		about: "One cluster: its connection, what it costs, and what is done in it.",
		panels: []panel{
			section("Connection"),
			lines("Connected", "1 if the last probe succeeded. Of ten clusters, those without a connection first.", "short",
				bottom(`masthead:cluster_connected:max`+at)),
			lines("Connections made", "By cause: the first one, after a loss, and for each kind of change.", "short",
				query{`sum by (cause) (increase(masthead_cluster_connects_total` + at + `[$__rate_interval]))`, "{{cause}}"}),
			lines("Failures", "Probes and attempts to connect that failed.", "short",
				query{`sum by (reason) (increase(masthead_cluster_failures_total` + at + `[$__rate_interval]))`, "{{reason}}"}),
			section("Requests"),
			lines("Requests by verb", "Requests to the API server of the cluster.", "reqps",
				query{`sum by (verb) (rate(masthead_cluster_requests_total` + at + `[$__rate_interval]))`, "{{verb}}"}),
			lines("Requests by code", "The class of the status code; none without an answer.", "reqps",
				query{`sum by (code) (rate(masthead_cluster_requests_total` + at + `[$__rate_interval]))`, "{{code}}"}),
			lines("Waiting for the limit", "Seconds of waiting in a second, of the ten clusters with the most.", "short",
				top(`sum by (`+cluster+`) (rate(masthead_cluster_client_throttled_seconds_total`+at+`[$__rate_interval]))`)),
			lines("Watches begun", "Of the ten clusters with the most. An API server ends each after five to ten minutes. "+
				"More of them mean that watches restart.", "short",
				top(`sum by (`+cluster+`) (increase(masthead_cluster_watches_started_total`+at+`[$__rate_interval]))`)),
			lines("Watches paused", "Seconds in a second in which a watch was not read, because the cluster sends too much. "+
				"Of the ten clusters with the most.", "short",
				top(`sum by (`+cluster+`) (rate(masthead_cluster_watches_paused_seconds_total`+at+`[$__rate_interval]))`)),
			lines("Answers refused", "Before they were decoded, by the limit that they exceed.", "short",
				query{`sum by (limit) (increase(masthead_cluster_answers_refused_total` + at + `[$__rate_interval]))`, "{{limit}}"}),
			section("Cost and work"),
			lines("Memory", "Of the budget that clusters share, of the ten clusters with the most.", "bytes",
				top(`max by (`+cluster+`) (masthead_cluster_memory_bytes`+at+`)`)),
			lines("Items that wait", "They are due, and wait for a worker or for the connection.", "short",
				query{`max by (controller) (masthead_queue_depth` + at + `)`, "{{controller}}"}),
			lines("Controllers that hang", "1 if an item recently took more than two seconds, so that the cluster has only one worker for a while.", "short",
				query{`max by (controller) (masthead_queue_hanging` + at + `)`, "{{controller}}"}),
			lines("Writes for claims", "To the cluster and, for it, to the hub.", "ops",
				query{`sum by (write) (rate(masthead_agent_writes_total` + at + `[$__rate_interval]))`, "{{write}}"}),
			lines("Writes of copies", "Many mean that another client reverts them.", "ops",
				query{`sum by (write) (rate(masthead_discovery_writes_total` + at + `[$__rate_interval]))`, "{{write}}"}),
			lines("Copies of the hub's objects", "Read-only copies that are as in the hub.", "short",
				query{`max by (crd) (masthead_discovery_objects` + at + `)`, "{{crd}}"}),
			lines("Kinds that are shown", "1 if everything of the kind is there.", "short", query{`min by (crd) (masthead_discovery_served` + at + `)`, "{{crd}}"}),
			lines("Protected", "1 if a policy protects what Masthead put there. Of ten clusters, those without protection first.", "short",
				bottom(`max by (`+cluster+`) (masthead_discovery_protected`+at+`)`)),
			lines("Panics", "Each is a bug. Of the ten clusters with the most.", "short",
				top(`sum by (`+cluster+`) (increase(masthead_panics_total`+at+`[$__rate_interval]))`)),
		},
	}
}

func requirements() dashboard {
	quantile := func(q, name string) string {
		return `histogram_quantile(` + q + `, sum by (le) (rate(` + name + `_bucket` + at + `[$__rate_interval])))`
	}
	latency := func(title, name string) panel {
		return lines(title, "From when a watch reports a change to when the other side has answered the write.", "s",
			query{quantile("0.5", name), "50 %"}, query{quantile("0.9", name), "90 %"}, query{quantile("0.99", name), "99 %"})
	}
	return dashboard{
		name: "requirements", title: "Requirements", perCluster: true,
		about: "Claims: how many, which wait and why, and how long they take.",
		panels: []panel{
			lines("Claims by reason", "The reason of the condition AgentSynced.", "short",
				query{`sum by (reason) (masthead:agent_requirements:max` + at + `)`, "{{reason}}"}),
			latency("Claim to hub", "masthead_agent_claim_to_hub_seconds"),
			latency("Hub to status", "masthead_agent_hub_to_status_seconds"),
			table("Claims that wait", "Claims that are not synchronised, by the reason.",
				`masthead:agent_requirements:max{`+chosen+`, reason!="Synced"} > 0`),
			table("Definitions that are refused", "Claim kinds that a cluster does not take as the hub offers them.",
				`max by (`+cluster+`, crd) (masthead_agent_definition_served`+at+`) == 0`),
			lines("Carried", "Claims that were written to the hub, of the ten clusters with the most.", "ops",
				top(`sum by (`+cluster+`) (rate(masthead_agent_writes_total{`+chosen+`, write="claim"}[$__rate_interval]))`)),
			lines("Statuses written", "Statuses of claims that were written to the cluster, of the ten clusters with the most.", "ops",
				top(`sum by (`+cluster+`) (rate(masthead_agent_writes_total{`+chosen+`, write="status"}[$__rate_interval]))`)),
			lines("Identities", "With whose rights claims are carried, and whether these can be used.", "short",
				query{`sum by (reason) (max by (` + cluster + `, reason) (masthead_agent_identities` + at + `))`, "{{reason}}"}),
			lines("Objects without a claim", "Objects of the hub whose claim is gone from the cluster, of the ten clusters with the most.", "short",
				top(`max by (`+cluster+`) (masthead_agent_orphans`+at+`) > 0`)),
			lines("Strays", "Objects that name a claim as their source and are not the claim's, of the ten clusters with the most.", "short",
				top(`max by (`+cluster+`) (masthead_agent_strays`+at+`) > 0`)),
			waiting("Claims that wait for a worker", "agent"),
		},
	}
}

func applications() dashboard {
	return dashboard{
		name: "applications", title: "Applications", perCluster: true,
		about: "The health of the Applications of the fleet.",
		panels: []panel{
			lines("Applications by health", "How many Applications are in each state.", "short",
				query{`sum by (health) (masthead:applications:max` + at + `)`, "{{health}}"}),
			lines("Components", "Wanted are those that Applications name, installed those that are there.", "short",
				query{`sum by (state) (max by (` + cluster + `, state) (masthead_application_components` + at + `))`, "{{state}}"}),
			lines("Writes", "To the cluster, because of its Applications. Many mean that another client reverts them.", "ops",
				query{`sum by (write) (rate(masthead_application_writes_total` + at + `[$__rate_interval]))`, "{{write}}"}),
			table("Clusters with broken Applications", "Applications that are Degraded or Missing.",
				`sum by (`+cluster+`) (masthead:applications:max{`+chosen+`, health=~"Degraded|Missing"}) > 0`),
			table("Clusters with Applications of unknown health", "A kind or a right is missing.",
				`masthead:applications:max{`+chosen+`, health="Unknown"} > 0`),
			waiting("Applications that wait for a worker", "application"),
			section("Each Application (with --application-metrics=PerApplication)"),
			table("Applications that are not healthy", "The state in which each is.",
				`max by (`+cluster+`, application_namespace, application_name, health) (masthead_application_health{`+chosen+`, health!="Healthy"})`),
			table("Applications that are not ready", "Their health check is not ready.",
				`max by (`+cluster+`, application_namespace, application_name) (masthead_application_ready`+at+`) == 0`),
			table("Components that are missing", "How many of each Application.",
				`max by (`+cluster+`, application_namespace, application_name) (masthead_application_components_wanted`+at+
					` - masthead_application_components_installed`+at+`) > 0`),
		},
	}
}

func imports() dashboard {
	return dashboard{
		name: "imports", title: "Imports", perCluster: false,
		about: "ClusterImports.",
		panels: []panel{
			number("Imports", "ClusterImports in any state.", `sum(max by (state) (masthead_imports))`),
			number("Ready", "ClusterImports whose cluster is imported.", `max(masthead_imports{state="ready"})`),
			number("Stalled", "ClusterImports that need a change by a user.", `max(masthead_imports{state="stalled"})`),
			lines("Imports by state", "Ready, in progress, stalled, or about to be un-imported.", "short",
				query{`max by (state) (masthead_imports)`, "{{state}}"}),
			lines("Reconciliations", "Of the controller of ClusterImports.", "ops",
				query{`sum by (result) (rate(controller_runtime_reconcile_total{controller="clusterimport"}[$__rate_interval]))`, "{{result}}"}),
			lines("Duration, 99 %", "Of the reconciliations.", "s", query{
				`histogram_quantile(0.99, sum by (le) (rate(controller_runtime_reconcile_time_seconds_bucket{controller="clusterimport"}[$__rate_interval])))`, "99 %",
			}),
			lines("Imports that wait for a worker", "Items in the queue of the controller.", "short",
				query{`sum(workqueue_depth{name="clusterimport"})`, "waiting"}),
		},
	}
}

func references() dashboard {
	return dashboard{
		name: "references", title: "References", perCluster: true,
		about: "Generic references: what is resolved, and what waits. The hub is a cluster of the source hub.",
		panels: []panel{
			lines("Objects by reason", "The reason of the condition ReferencesResolved.", "short",
				query{`sum by (reason) (max by (` + cluster + `, reason) (masthead_references_objects` + at + `))`, "{{reason}}"}),
			lines("Fields filled in", "Fields that references filled in, of the ten clusters with the most.", "ops",
				top(`sum by (`+cluster+`) (rate(masthead_references_filled_fields_total`+at+`[$__rate_interval]))`)),
			lines("Kinds by state of their watch", "Objects of a kind that is not Synced do not report that their references are not resolved.", "short",
				query{`sum by (state) (max by (` + cluster + `, state) (masthead_references_kinds` + at + `))`, "{{state}}"}),
			table("Objects whose references are not resolved", "By the reason of their condition.",
				`max by (`+cluster+`, reason) (masthead_references_objects{`+chosen+`, reason!="Resolved"}) > 0`),
			waiting("Objects that wait for a worker", "references"),
		},
	}
}

func internals() dashboard {
	return dashboard{
		name: "manager-internals", title: "Manager internals", perCluster: false,
		about: "The process, its controllers and its queues.",
		panels: []panel{
			number("Ready", "1 if a replica is.", `max(masthead_ready)`),
			number("Leaders", "Of which there is one.", `sum(leader_election_master_status{name="masthead-leader"})`),
			{title: "Versions", about: "Those of all replicas.", kind: "table", unit: "short", width: 16, queries: []query{{expr: `max by (version, go_version, pod) (masthead_build_info)`}}},
			section("Controllers"),
			lines("Reconciliations", "Of each controller.", "ops",
				query{`sum by (controller) (rate(controller_runtime_reconcile_total[$__rate_interval]))`, "{{controller}}"}),
			lines("Errors", "Reconciliations that failed and are tried again.", "ops",
				query{`sum by (controller) (rate(controller_runtime_reconcile_errors_total[$__rate_interval]))`, "{{controller}}"}),
			lines("Duration, 99 %", "Of the reconciliations.", "s", query{
				`histogram_quantile(0.99, sum by (controller, le) (rate(controller_runtime_reconcile_time_seconds_bucket[$__rate_interval])))`, "{{controller}}",
			}),
			lines("Waiting for a worker, 99 %", "Without clusters that hang.", "s", query{`masthead:queue_wait_seconds:p99_5m`, "{{controller}}"}),
			lines("Items that wait", "Items of all clusters that are due.", "short",
				query{`sum by (controller) (masthead_queue_depth)`, "{{controller}}"}),
			lines("Workers that are busy", "Part of the workers that a controller has.", "percentunit", query{
				`sum by (controller) (controller_runtime_active_workers) / sum by (controller) (controller_runtime_max_concurrent_reconciles)`, "{{controller}}",
			}),
			lines("Panics", "Each is a bug.", "short",
				query{`sum by (controller) (increase(controller_runtime_reconcile_panics_total[$__rate_interval]))`, "{{controller}}"}),
			lines("Clusters that hang", "Clusters that have one worker for a while.", "short", query{`sum by (controller) (masthead_queue_hanging)`, "{{controller}}"}),
			lines("Probes, 99 %", "Of all clusters.", "s", query{
				`histogram_quantile(0.99, sum by (le) (rate(masthead_cluster_probe_duration_seconds_bucket[$__rate_interval])))`, "99 %",
			}),
			section("Process"),
			lines("Memory", "Of the process as the kernel counts it, and of Go's heap.", "bytes",
				query{`process_resident_memory_bytes{job=~".*masthead.*"}`, "{{pod}} resident"},
				query{`go_memstats_heap_inuse_bytes{job=~".*masthead.*"}`, "{{pod}} heap"}),
			lines("Memory budget", "What clusters share.", "bytes", query{`max(masthead_memory_budget_bytes)`, "budget"},
				query{`max(masthead_memory_budget_used_bytes)`, "in use"}),
			lines("CPU", "Cores in use.", "short",
				query{`rate(process_cpu_seconds_total{job=~".*masthead.*"}[$__rate_interval])`, "{{pod}}"}),
			lines("Goroutines", "Goroutines of the process.", "short",
				query{`go_goroutines{job=~".*masthead.*"}`, "{{pod}}"}),
			lines("File descriptors", "Open ones, and how many may be open.", "short",
				query{`process_open_fds{job=~".*masthead.*"}`, "{{pod}} open"}, query{`process_max_fds{job=~".*masthead.*"}`, "{{pod}} limit"}),
			lines("Requests by code", "To the hub.", "reqps",
				query{`sum by (code) (rate(rest_client_requests_total{job=~".*masthead.*"}[$__rate_interval]))`, "{{code}}"}),
		},
	}
}
