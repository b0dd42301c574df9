// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/masthead-dev/masthead/test/harness"
	"github.com/masthead-dev/masthead/test/kindfleet"
	"github.com/masthead-dev/masthead/test/localfleet"
)

const (
	ownNamespace   = localfleet.ServiceAccountNamespace
	podsOfMasthead = "--selector=app.kubernetes.io/name=masthead"

	imageName = "masthead.test/masthead"
	// nextTag is a second name of the same image, to which the manager is upgraded.
	nextTag = "upgraded"
)

// What exists only in kind, for specs that need it.
var (
	inKind *kindfleet.Fleet
	asPods *podManager
)

var _ Fleet = (*kindfleet.Fleet)(nil)

// podManager is the manager that the charts install, with two replicas in the hub.
type podManager struct{}

var _ Manager = (*podManager)(nil)

// Upgrade installs the chart with further values, or upgrades the installed release, and does not wait.
func (m *podManager) Upgrade(ctx context.Context, values ...string) error {
	return m.upgrade(ctx, nil, values...)
}

func (m *podManager) upgrade(ctx context.Context, flags []string, values ...string) error {
	path, err := chart("masthead")
	if err != nil {
		return err
	}
	extra, err := json.Marshal(slices.Concat(managerFlags, flags))
	if err != nil {
		return err
	}
	args := []string{"upgrade", "--install", "masthead", path, "--set-json", "extraArgs=" + string(extra)}
	for _, value := range append([]string{"replicas=2", "image.repository=" + imageName, "image.tag=" + version()}, values...) {
		args = append(args, "--set", value)
	}
	return inKind.Helm(ctx, hub, args...)
}

// Install is Upgrade, and waits until the replicas are ready.
func (m *podManager) Install(ctx context.Context, values ...string) error {
	if err := m.Upgrade(ctx, values...); err != nil {
		return err
	}
	return m.rolledOut(ctx)
}

func (m *podManager) Start(ctx context.Context, flags ...string) error {
	if err := m.upgrade(ctx, flags); err != nil {
		return err
	}
	return m.rolledOut(ctx)
}

func (m *podManager) rolledOut(ctx context.Context) error {
	_, err := inKind.Kubectl(ctx, hub, "rollout", "status", "deployment/masthead", "--namespace", ownNamespace, "--timeout=3m")
	return err
}

// Launch waits until the containers that replace others run.
func (m *podManager) Launch(ctx context.Context) error {
	err := wait.PollUntilContextTimeout(ctx, 200*time.Millisecond, 3*time.Minute, true, func(ctx context.Context) (bool, error) {
		started, err := tryGet(ctx, hub, "{.items[*].status.containerStatuses[0].state.running.startedAt}",
			"pods", podsOfMasthead, "--namespace", ownNamespace)
		return err == nil && len(strings.Fields(started)) == 2, nil
	})
	if err != nil {
		return fmt.Errorf("the containers of the manager do not start: %w", err)
	}
	return nil
}

func (m *podManager) Stop(ctx context.Context) error {
	if err := m.Upgrade(ctx, "replicas=0"); err != nil {
		return err
	}
	_, err := inKind.Kubectl(ctx, hub, "wait", "pods", podsOfMasthead, "--namespace", ownNamespace, "--for=delete", "--timeout=3m")
	return err
}

// Kill deletes all replicas without giving them time to end. Their Deployment creates others at once.
func (m *podManager) Kill(ctx context.Context) error {
	_, err := inKind.Kubectl(ctx, hub, "delete", "pods", podsOfMasthead, "--namespace", ownNamespace, "--grace-period=0", "--force")
	return err
}

// readiness returns for each replica whether it is ready.
func (m *podManager) readiness(ctx context.Context) (string, error) {
	return tryGet(ctx, hub, `{range .items[*]}{.status.conditions[?(@.type=="Ready")].status} {end}`, "pods", podsOfMasthead, "--namespace", ownNamespace)
}

func (m *podManager) Alive(ctx context.Context) bool {
	ready, err := m.readiness(ctx)
	return err == nil && slices.Equal(strings.Fields(ready), slices.Repeat([]string{"True"}, 2))
}

// Leader is the Pod that leads: the holder of the lease is named after it.
func (m *podManager) Leader(ctx context.Context) (string, error) {
	holder, err := tryGet(ctx, hub, "{.spec.holderIdentity}", "lease", "masthead-leader", "--namespace", ownNamespace)
	name, _, _ := strings.Cut(holder, "_")
	return name, err
}

func (m *podManager) Metrics(ctx context.Context) (harness.Metrics, error) {
	leader, err := m.Leader(ctx)
	if err != nil {
		return nil, err
	}
	address, err := tryGet(ctx, hub, "{.status.podIP}", "pod", leader, "--namespace", ownNamespace)
	if err != nil {
		return nil, err
	}
	if address == "" {
		return nil, errors.New("the replica that led has no address any more")
	}
	token, err := inKind.Kubectl(ctx, hub, "create", "token", metricsReader, "--namespace", ownNamespace)
	if err != nil {
		return nil, err
	}
	text, err := inKind.Exec(ctx, inKind.Node(hub), fmt.Sprintf("curl --silent --show-error --fail --insecure --max-time 10 "+
		"--header 'Authorization: Bearer %s' https://%s:8443/metrics", strings.TrimSpace(token), address))
	if err != nil {
		return nil, err
	}
	return harness.ParseMetrics(strings.NewReader(text))
}

// metricsReader is a ServiceAccount that may read the metrics.
const metricsReader = "metrics-reader"

// LogTail shows the Pods of the hub, too.
func (m *podManager) LogTail(lines int) string {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	pods, _ := inKind.Kubectl(ctx, hub, "get", "pods", "--all-namespaces", "-o", "wide")
	logs, _ := inKind.Kubectl(ctx, hub, "logs", "--namespace", ownNamespace, podsOfMasthead, fmt.Sprintf("--tail=%d", lines), "--prefix")
	return pods + logs
}

// version is the tag of the manager's image.
func version() string { return os.Getenv("MASTHEAD_KIND_VERSION") }

// hubNodes are the nodes of the hub.
func hubNodes() []string { return []string{inKind.Node(hub), kindfleet.Prefix + hub + "-worker"} }

func chart(name string) (string, error) {
	repository, err := localfleet.Repository()
	return filepath.Join(repository, "charts", name), err
}

// setUpKind creates the clusters in kind, and installs Masthead with its charts.
func setUpKind(ctx context.Context) {
	GinkgoHelper()
	Expect(os.Getenv("E2E_KIND_IMAGE")).NotTo(BeEmpty(), "make e2e-kind sets what this needs")
	dir := os.Getenv("MASTHEAD_E2E_DIR")
	keep := dir != ""
	if !keep {
		dir = GinkgoT().TempDir()
	}
	repository, err := localfleet.Repository()
	Expect(err).NotTo(HaveOccurred())
	built := filepath.Join(repository, "bin", "kindnode")
	// A replica that is started after a kill becomes the leader, and begins to work, when the lease of the previous leader
	// has expired.
	workloads, kills, longestLife = []string{"w1", "w2"}, 5, 40*time.Second

	By("starting a hub of two nodes and two workload clusters")
	begun := time.Now()
	inKind, err = kindfleet.Up(ctx, kindfleet.Options{
		Dir: dir, Workloads: workloads, Log: GinkgoWriter,
		BinDir:   cmp.Or(os.Getenv("MASTHEAD_CONTROLPLANE_BIN"), filepath.Join(repository, "bin", "controlplane")),
		Kind:     filepath.Join(built, "programs", "kind"),
		Helm:     os.Getenv("MASTHEAD_HELM_BIN"),
		Image:    os.Getenv("E2E_KIND_IMAGE"),
		Archives: filepath.Join(built, "archives"),
	})
	if !keep {
		DeferCleanup(func(ctx context.Context) { Expect(inKind.Down(ctx)).To(Succeed()) }, NodeTimeout(2*time.Minute))
	}
	Expect(err).NotTo(HaveOccurred())
	fleet = inKind
	objects = harness.NewClient(fleet)
	remarks = append(remarks, fmt.Sprintf("three clusters with their controllers: %.0f s", time.Since(begun).Seconds()))

	By("installing Masthead by its charts")
	begun = time.Now()
	crds, err := chart("masthead-crds")
	Expect(err).NotTo(HaveOccurred())
	Expect(inKind.Helm(ctx, hub, "install", "masthead-crds", crds, "--create-namespace")).To(Succeed())
	asPods = &podManager{}
	manager = asPods
	startManager(ctx)
	Expect(harness.InstallSamples(ctx, fleet)).To(Succeed())
	for _, node := range hubNodes() {
		_, err = inKind.Exec(ctx, node, "ctr --namespace k8s.io images tag "+imageName+":"+version()+" "+imageName+":"+nextTag)
		Expect(err).NotTo(HaveOccurred())
	}
	kubectl(ctx, hub, "create", "serviceaccount", metricsReader, "--namespace", ownNamespace)
	kubectl(ctx, hub, "create", "clusterrolebinding", "e2e-metrics-reader", "--clusterrole=masthead-metrics-reader",
		"--serviceaccount="+ownNamespace+":"+metricsReader)
	remarks = append(remarks, fmt.Sprintf("Masthead installed: %.0f s", time.Since(begun).Seconds()))
}
