// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package cost

import (
	"cmp"
	"math"
	"slices"
	"time"

	dto "github.com/prometheus/client_model/go"
)

// An Answer is the cost of a manager, and of each cluster.
type Answer struct {
	Manager     Manager      `json:"manager"`
	Clusters    []Cluster    `json:"clusters"`
	Controllers []Controller `json:"controllers"`
}

// A Manager is the process.
type Manager struct {
	Version string `json:"version"`

	// Over is the period of the rates, in seconds. Without it there are no rates.
	Over float64 `json:"overSeconds,omitempty"`

	ResidentBytes   float64 `json:"residentBytes"`
	BudgetBytes     float64 `json:"budgetBytes"`
	BudgetUsedBytes float64 `json:"budgetUsedBytes"`
	Goroutines      float64 `json:"goroutines"`
	CPU             float64 `json:"cpu,omitempty"`
}

// A Cluster is the cost of one cluster.
type Cluster struct {
	Name string `json:"name"`

	// Bytes is the part of the memory budget used for the cluster, estimated.
	Bytes float64 `json:"bytes"`

	// Objects is the sum of the four that follow.
	Objects      float64 `json:"objects"`
	Claims       float64 `json:"claims"`
	Copies       float64 `json:"copies"`
	Applications float64 `json:"applications"`
	Components   float64 `json:"components"`

	// Requests are those to the API server of the cluster since the manager started, by verb; PerSecond is the rate.
	Requests  map[string]float64 `json:"requests,omitempty"`
	PerSecond map[string]float64 `json:"requestsPerSecond,omitempty"`

	// Throttled is how many seconds requests waited for --cluster-qps since the manager started.
	Throttled float64 `json:"throttledSeconds"`

	// Queued are the items that wait for a worker, Hanging the controllers with long-running items.
	Queued  float64 `json:"queued"`
	Hanging float64 `json:"hanging"`
}

// Rate returns the number of requests per second.
func (c *Cluster) Rate() float64 { return total(c.PerSecond) }

// Total returns the number of requests.
func (c *Cluster) Total() float64 { return total(c.Requests) }

func total(byVerb map[string]float64) float64 {
	var sum float64
	for _, n := range byVerb {
		sum += n
	}
	return sum
}

// A Controller is the load of one controller.
type Controller struct {
	Name string `json:"name"`

	Reconciles float64 `json:"reconciles"`
	Errors     float64 `json:"errors"`
	PerSecond  float64 `json:"reconcilesPerSecond,omitempty"`

	// Mean is the mean duration of a reconciliation, in seconds: over the period of the rates, or since the manager
	// started.
	Mean float64 `json:"meanSeconds"`

	Queued  float64 `json:"queued"`
	Busy    float64 `json:"busyWorkers"`
	Workers float64 `json:"workers"`
}

// Calculate computes the cost from one sample: rates are those since the manager started. Without the time of the
// sample there are none.
func Calculate(s Sample, at time.Time) Answer {
	over := 0.0
	if began := s.one("process_start_time_seconds"); began > 0 && !at.IsZero() {
		over = max(0, float64(at.UnixMilli())/1000-began)
	}
	return between(Sample{}, s, over)
}

// Between computes the cost from two samples.
func Between(before, after Sample, over time.Duration) Answer {
	return between(before, after, over.Seconds())
}

func between(before, after Sample, over float64) Answer {
	perSecond := func(was, is float64) float64 {
		if over <= 0 {
			return 0
		}
		return round(grown(was, is) / over)
	}
	answer := Answer{Manager: Manager{
		Over: round(over), ResidentBytes: after.one("process_resident_memory_bytes"), BudgetBytes: after.one("masthead_memory_budget_bytes"),
		BudgetUsedBytes: after.one("masthead_memory_budget_used_bytes"), Goroutines: after.one("go_goroutines"),
		CPU: perSecond(before.one("process_cpu_seconds_total"), after.one("process_cpu_seconds_total")),
	}}
	after.each("masthead_build_info", func(labels map[string]string, _ *dto.Metric) { answer.Manager.Version = labels["version"] })
	answer.Clusters = clusters(before, after, over > 0, perSecond)
	answer.Controllers = controllers(before, after, perSecond)
	return answer
}

// grown returns the growth of a counter. A smaller value than before means a reset.
func grown(was, is float64) float64 {
	if is < was {
		return is
	}
	return is - was
}

// round keeps three digits behind the point: more is noise.
func round(n float64) float64 { return math.Round(n*1000) / 1000 }

type rate func(was, is float64) float64

func clusters(before, after Sample, rates bool, perSecond rate) []Cluster {
	byName := map[string]*Cluster{}
	at := func(name string) *Cluster {
		if byName[name] == nil {
			byName[name] = &Cluster{Name: name}
		}
		return byName[name]
	}
	for name := range after.sum("masthead_cluster_connected", clusterLabel) {
		at(name) // One that costs nothing is there, too.
	}
	for metric, add := range map[string]func(*Cluster, float64){
		"masthead_cluster_memory_bytes":                   func(c *Cluster, n float64) { c.Bytes = n },
		"masthead_agent_requirements":                     func(c *Cluster, n float64) { c.Claims = n },
		"masthead_discovery_objects":                      func(c *Cluster, n float64) { c.Copies = n },
		"masthead_applications":                           func(c *Cluster, n float64) { c.Applications = n },
		"masthead_queue_depth":                            func(c *Cluster, n float64) { c.Queued = n },
		"masthead_queue_hanging":                          func(c *Cluster, n float64) { c.Hanging = n },
		"masthead_cluster_client_throttled_seconds_total": func(c *Cluster, n float64) { c.Throttled = round(n) },
	} {
		for name, n := range after.sum(metric, clusterLabel) {
			add(at(name), n)
		}
	}
	after.each("masthead_application_components", func(labels map[string]string, m *dto.Metric) {
		if labels["state"] == "installed" {
			at(clusterLabel(labels)).Components += value(m)
		}
	})
	was := requests(before)
	for name, byVerb := range requests(after) {
		c := at(name)
		c.Requests = byVerb
		if !rates {
			continue
		}
		c.PerSecond = map[string]float64{}
		for verb, n := range byVerb {
			c.PerSecond[verb] = perSecond(was[name][verb], n)
		}
	}
	out := make([]Cluster, 0, len(byName))
	for _, c := range byName {
		c.Objects = c.Claims + c.Copies + c.Applications + c.Components
		out = append(out, *c)
	}
	Sort(out, ByMemory)
	return out
}

// requests returns those to each cluster by verb.
func requests(s Sample) map[string]map[string]float64 {
	out := map[string]map[string]float64{}
	s.each("masthead_cluster_requests_total", func(labels map[string]string, m *dto.Metric) {
		name := clusterLabel(labels)
		if out[name] == nil {
			out[name] = map[string]float64{}
		}
		out[name][labels["verb"]] += value(m)
	})
	return out
}

func controllers(before, after Sample, perSecond rate) []Controller {
	reconciles := after.sum("controller_runtime_reconcile_total", controllerLabel)
	was := before.sum("controller_runtime_reconcile_total", controllerLabel)
	failed := after.sum("controller_runtime_reconcile_errors_total", controllerLabel)
	busy, workers := after.sum("controller_runtime_active_workers", controllerLabel), after.sum("controller_runtime_max_concurrent_reconciles", controllerLabel)
	fair, plain := after.sum("masthead_queue_depth", controllerLabel), after.sum("workqueue_depth", controllerLabel)
	took := times(before, after)
	out := make([]Controller, 0, len(reconciles))
	for name, n := range reconciles {
		out = append(out, Controller{
			Name: name, Reconciles: n, Errors: failed[name], PerSecond: perSecond(was[name], n), Mean: took[name],
			Queued: fair[name] + plain[name], Busy: busy[name], Workers: workers[name],
		})
	}
	slices.SortFunc(out, func(a, b Controller) int {
		return cmp.Or(cmp.Compare(b.PerSecond, a.PerSecond), cmp.Compare(b.Reconciles, a.Reconciles), cmp.Compare(a.Name, b.Name))
	})
	return out
}

// times returns the mean duration of a reconciliation of each controller.
func times(before, after Sample) map[string]float64 {
	const metric = "controller_runtime_reconcile_time_seconds"
	type sums struct{ seconds, count float64 }
	was := map[string]sums{}
	before.each(metric, func(labels map[string]string, m *dto.Metric) {
		was[labels["controller"]] = sums{m.GetHistogram().GetSampleSum(), float64(m.GetHistogram().GetSampleCount())}
	})
	out := map[string]float64{}
	after.each(metric, func(labels map[string]string, m *dto.Metric) {
		name := labels["controller"]
		count := grown(was[name].count, float64(m.GetHistogram().GetSampleCount()))
		if count > 0 {
			out[name] = math.Round(grown(was[name].seconds, m.GetHistogram().GetSampleSum())/count*1e6) / 1e6
		}
	})
	return out
}
