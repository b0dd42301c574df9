// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/masthead-dev/masthead/internal/cli/cost"
	"github.com/masthead-dev/masthead/internal/cli/fleet"
	"github.com/masthead-dev/masthead/internal/cli/terminal"
)

// The views of top.
const (
	topClusters    = "clusters"
	topControllers = "controllers"
)

// measuring holds the flags of the command.
type measuring struct {
	url, file, account, sortBy string
	interval                   time.Duration
}

func newTop(a *app) *cobra.Command {
	var m measuring
	cmd := a.withOutput(&cobra.Command{
		Use:   "top [clusters|controllers]",
		Short: "Show what each cluster costs the manager",
		Long: `Show what each cluster costs: memory and objects that the manager keeps for it, requests to its API server, and what waits in
queues; or how much each controller does. The data comes from the manager's metrics.

Without --metrics-url and --metrics-file, the Pod of the manager that holds the lease is queried through the API server of the
hub, as kubectl port-forward does, with a token of a ServiceAccount that may read metrics. That needs the rights to create
pods/portforward and serviceaccounts/token in that namespace. The token is valid for ten minutes and is never printed.`,
		Example: `  # The most expensive clusters first
  kubectl masthead top

  # By requests, over a minute
  kubectl masthead top --sort-by requests --interval 1m -o wide

  # The controllers, from metrics that were already scraped
  curl -s http://127.0.0.1:18080/metrics | kubectl masthead top controllers --metrics-file -`,
		Args:              cobra.MatchAll(cobra.MaximumNArgs(1), cobra.OnlyValidArgs),
		ValidArgs:         []string{topClusters, topControllers},
		ValidArgsFunction: cobra.FixedCompletions([]string{topClusters, topControllers}, cobra.ShellCompDirectiveNoFileComp),
		RunE: func(cmd *cobra.Command, arguments []string) error {
			answer, err := a.measure(cmd.Context(), m)
			if err != nil {
				return err
			}
			cost.Sort(answer.Clusters, m.sortBy)
			return a.print(answer, func(wide bool) error {
				a.note("%s", managerLine(answer.Manager))
				if slices.Contains(arguments, topControllers) {
					return controllerTable(answer).Write(a.Streams.Out)
				}
				return costTable(answer, wide).Write(a.Streams.Out)
			})
		},
	})
	flags := cmd.Flags()
	flags.StringVar(&m.url, "metrics-url", "", "URL from which to read the metrics, without a token, instead of from a Pod of the manager")
	flags.StringVar(&m.file, "metrics-file", "", "Read metrics that were already scraped from this file, or - for the standard input")
	flags.StringVar(&m.account, "service-account", "", "NAMESPACE/NAME of the ServiceAccount whose token reads the metrics (default one that is bound to masthead-metrics-reader)")
	flags.StringVar(&m.sortBy, "sort-by", cost.ByMemory, "Sort clusters by "+strings.Join(cost.Orders(), ", "))
	flags.DurationVar(&m.interval, "interval", 5*time.Second, "Read twice, and compute rates over this time; 0 reads once, and computes rates since the manager started")
	_ = cmd.RegisterFlagCompletionFunc("sort-by", cobra.FixedCompletions(cost.Orders(), cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

func (m *measuring) check() error {
	switch {
	case m.url != "" && m.file != "":
		return misused("--metrics-url and --metrics-file are mutually exclusive")
	case m.interval < 0:
		return misused("--interval must be at least 0")
	case !slices.Contains(cost.Orders(), m.sortBy):
		return misused("--sort-by must be one of %s", strings.Join(cost.Orders(), ", "))
	case m.account != "" && strings.Count(m.account, "/") != 1:
		return misused("--service-account must have the form NAMESPACE/NAME")
	}
	return nil
}

// measure reads the metrics, once or twice.
func (a *app) measure(ctx context.Context, m measuring) (cost.Answer, error) {
	if err := m.check(); err != nil {
		return cost.Answer{}, err
	}
	if m.file != "" {
		sample, err := a.readSample(func() (io.ReadCloser, error) { return a.open(m.file) })
		if err != nil {
			return cost.Answer{}, fmt.Errorf("%q: %w", m.file, err)
		}
		return cost.Calculate(sample, time.Time{}), nil // The time of the scrape is unknown.
	}
	scrape := func() (io.ReadCloser, error) { return fleet.MetricsAt(ctx, m.url) }
	if m.url == "" {
		hub, err := a.hub()
		if err != nil {
			return cost.Answer{}, err
		}
		if scrape, err = scraper(ctx, hub, m.account); err != nil {
			return cost.Answer{}, fmt.Errorf("%w (--metrics-url and --metrics-file read metrics from elsewhere; docs/operations.md says who may read them)", err)
		}
	}
	first, err := a.readSample(scrape)
	if err != nil {
		return cost.Answer{}, err
	}
	if m.interval == 0 {
		return cost.Calculate(first, a.Clock.Now()), nil
	}
	began := a.Clock.Now()
	a.note("measuring for %s ...", m.interval)
	if err := pause(ctx, m.interval); err != nil {
		return cost.Answer{}, err
	}
	over := max(a.Clock.Since(began), m.interval)
	second, err := a.readSample(scrape)
	if err != nil {
		return cost.Answer{}, err
	}
	return cost.Between(first, second, over), nil
}

// pause waits, or until the context ends.
func pause(ctx context.Context, d time.Duration) error {
	return wait.PollUntilContextCancel(ctx, d, false, func(context.Context) (bool, error) { return true, nil })
}

func (a *app) readSample(open func() (io.ReadCloser, error)) (cost.Sample, error) {
	body, err := open()
	if err != nil {
		return cost.Sample{}, err
	}
	defer func() { _ = body.Close() }()
	return cost.Parse(body)
}

// open opens a file, or standard input.
func (a *app) open(name string) (io.ReadCloser, error) {
	if name == "-" {
		return io.NopCloser(a.Streams.In), nil
	}
	return os.Open(name) //nolint:gosec // The user says which.
}

// scraper returns the function that scrapes the manager's Pod.
func scraper(ctx context.Context, hub *fleet.Hub, word string) (func() (io.ReadCloser, error), error) {
	pod, err := hub.ManagerPod(ctx)
	if err != nil {
		return nil, err
	}
	namespace, name, _ := strings.Cut(word, "/")
	account := client.ObjectKey{Namespace: namespace, Name: name}
	if word == "" {
		if account, err = hub.MetricsReader(ctx); err != nil {
			return nil, err
		}
	}
	token, err := hub.Token(ctx, account)
	if err != nil {
		return nil, err
	}
	return func() (io.ReadCloser, error) { return hub.Metrics(ctx, pod, token) }, nil
}

// managerLine describes the state of the process.
func managerLine(m cost.Manager) string {
	line := fmt.Sprintf("manager %s: %s resident, %s of the budget of %s in use", m.Version, bytesText(m.ResidentBytes), bytesText(m.BudgetUsedBytes), bytesText(m.BudgetBytes))
	if m.Over > 0 {
		line += fmt.Sprintf(", %s CPUs; rates are over %s", number(m.CPU), (time.Duration(m.Over * float64(time.Second))).Round(time.Second))
	}
	return line
}

// verbColumns are the columns of requests in --output wide, with their verbs.
var verbColumns = []struct { //nolint:gochecknoglobals // A constant.
	name  string
	verbs []string
}{
	{"GET", []string{"get"}},
	{"LIST", []string{"list"}},
	{"WATCH", []string{"watch"}},
	{"WRITE", []string{"create", "update", "patch", "delete", "deletecollection"}},
}

func costTable(answer cost.Answer, wide bool) terminal.Table {
	requests := "REQUESTS"
	if answer.Manager.Over > 0 {
		requests = "REQUESTS/S"
	}
	t := terminal.Table{Columns: []string{"CLUSTER", "MEMORY", "OBJECTS", requests, "QUEUED", "HANGING"}}
	if wide {
		t.Columns = append(t.Columns, "CLAIMS", "COPIES", "APPLICATIONS", "COMPONENTS")
		for _, v := range verbColumns {
			t.Columns = append(t.Columns, v.name)
		}
		t.Columns = append(t.Columns, "THROTTLED")
	}
	for _, c := range answer.Clusters {
		byVerb, all := c.Requests, c.Total()
		if answer.Manager.Over > 0 {
			byVerb, all = c.PerSecond, c.Rate()
		}
		row := []string{c.Name, bytesText(c.Bytes), number(c.Objects), number(all), number(c.Queued), number(c.Hanging)}
		if wide {
			row = append(row, number(c.Claims), number(c.Copies), number(c.Applications), number(c.Components))
			for _, v := range verbColumns {
				var n float64
				for _, verb := range v.verbs {
					n += byVerb[verb]
				}
				row = append(row, number(n))
			}
			row = append(row, number(c.Throttled)+"s")
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

func controllerTable(answer cost.Answer) terminal.Table {
	t := terminal.Table{Columns: []string{"CONTROLLER", "RECONCILES", "ERRORS", "MEAN", "QUEUED", "BUSY", "WORKERS"}}
	rates := answer.Manager.Over > 0
	if rates {
		t.Columns = slices.Insert(t.Columns, 2, "PER SECOND")
	}
	for _, c := range answer.Controllers {
		mean := time.Duration(c.Mean * float64(time.Second)).Round(10 * time.Microsecond)
		row := []string{c.Name, number(c.Reconciles), number(c.Errors), mean.String(), number(c.Queued), number(c.Busy), number(c.Workers)}
		if rates {
			row = slices.Insert(row, 2, number(c.PerSecond))
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

// number formats a figure without insignificant digits.
func number(n float64) string {
	if n >= 100 || n == float64(int64(n)) {
		return strconv.FormatFloat(n, 'f', 0, 64)
	}
	return strconv.FormatFloat(n, 'f', 2, 64)
}

// bytesText formats bytes as Kubernetes does.
func bytesText(n float64) string {
	const kibi = 1024
	switch {
	case n >= kibi*kibi:
		n -= float64(int64(n) % (kibi * kibi))
	case n >= kibi:
		n -= float64(int64(n) % kibi)
	}
	return resource.NewQuantity(int64(n), resource.BinarySI).String()
}
