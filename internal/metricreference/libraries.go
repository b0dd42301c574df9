// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package metricreference

import "github.com/masthead-dev/masthead/pkg/metric"

// libraries are the metrics of controller-runtime, client-go and Go's runtime that our dashboards and alerts use. There
// are more of them. A test holds each against what the libraries register.
func libraries() []metric.Definition {
	controller := metric.Label{Name: "controller", Values: "the name of the controller"}
	priority := metric.Label{Name: "priority", Values: "a number"}
	name := metric.Label{Name: "name", Values: "the name of the queue, which is that of the controller"}
	of := func(t metric.Type, name, help string, labels ...metric.Label) metric.Definition {
		return metric.Definition{Name: name, Help: help, Type: t, Labels: labels}
	}
	return []metric.Definition{
		of(metric.TypeCounter, "controller_runtime_reconcile_total", "Reconciliations of a controller.", controller,
			metric.Label{Name: "result", Values: "error, requeue, requeue_after, success"}),
		of(metric.TypeCounter, "controller_runtime_reconcile_errors_total", "Reconciliations that ended with an error.", controller),
		of(metric.TypeCounter, "controller_runtime_reconcile_panics_total", "Reconciliations that panicked.", controller),
		of(metric.TypeHistogram, "controller_runtime_reconcile_time_seconds", "How long reconciliations took.", controller),
		of(metric.TypeGauge, "controller_runtime_active_workers", "Busy workers.", controller),
		of(metric.TypeGauge, "controller_runtime_max_concurrent_reconciles", "Number of workers.", controller),
		of(metric.TypeGauge, "workqueue_depth", "Items that wait in the queue of a controller that does not queue fairly across clusters.", name, controller, priority),
		of(metric.TypeCounter, "workqueue_retries_total", "Items that were retried.", name, controller),
		of(metric.TypeCounter, "rest_client_requests_total", "Requests to the hub.",
			metric.Label{Name: "code", Values: "the status code, or <error>"},
			metric.Label{Name: "method", Values: "the HTTP method"},
			metric.Label{Name: "host", Values: "the host of the hub"}),
		of(metric.TypeGauge, "leader_election_master_status", "1 if this replica holds the lease, else 0.",
			metric.Label{Name: "name", Values: "the name of the Lease"}),
		of(metric.TypeCounter, "process_cpu_seconds_total", "CPU time of the process."),
		of(metric.TypeGauge, "process_resident_memory_bytes", "Memory of the process as the kernel counts it."),
		of(metric.TypeGauge, "process_start_time_seconds", "When the process started, in seconds since 1970."),
		of(metric.TypeGauge, "process_open_fds", "Open file descriptors."),
		of(metric.TypeGauge, "process_max_fds", "Maximum number of open file descriptors."),
		of(metric.TypeGauge, "go_goroutines", "Goroutines."),
		of(metric.TypeGauge, "go_memstats_heap_inuse_bytes", "Heap memory in use."),
	}
}
