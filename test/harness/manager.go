// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/masthead-dev/masthead/test/localfleet"
)

// Manager is a running bin/manager.
type Manager struct {
	// LogPath is the file to which the manager logs.
	LogPath string

	cmd            *exec.Cmd
	metricsAddress string
	healthAddress  string
	exited         chan struct{}
	exitError      error
}

// StartManager starts bin/manager against the hub of the fleet and waits until it is ready. The flags are added to
// those that a local run needs. The process dies with the process that started it.
func StartManager(ctx context.Context, fleet *localfleet.Fleet, flags ...string) (*Manager, error) {
	kubeconfig, err := ManagerKubeconfig(ctx, fleet)
	if err != nil {
		return nil, err
	}
	m, err := LaunchManager(fleet, kubeconfig, flags...)
	if err != nil {
		return nil, err
	}
	if err := m.WaitReady(ctx); err != nil {
		return nil, errors.Join(err, m.Kill())
	}
	return m, nil
}

// LaunchManager starts bin/manager with a kubeconfig from ManagerKubeconfig, and does not wait for it to be ready.
func LaunchManager(fleet *localfleet.Fleet, kubeconfig string, flags ...string) (*Manager, error) {
	repository, err := localfleet.Repository()
	if err != nil {
		return nil, err
	}
	metrics, err := FreeAddress()
	if err != nil {
		return nil, err
	}
	health, err := FreeAddress()
	if err != nil {
		return nil, err
	}
	m := &Manager{
		LogPath:        filepath.Join(fleet.Dir(), "manager.log"),
		metricsAddress: metrics,
		healthAddress:  health,
		exited:         make(chan struct{}),
	}
	log, err := os.OpenFile(m.LogPath, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("cannot open the manager's log: %w", err)
	}
	defer func() { _ = log.Close() }()
	m.cmd = exec.Command(binary(repository), append([]string{
		"--kubeconfig", kubeconfig,
		"--metrics-bind-address", metrics, "--metrics-secure=false",
		"--health-bind-address", health,
		"--leader-elect=false",
		"--allow-loopback-endpoints",
	}, flags...)...)
	m.cmd.Stdout, m.cmd.Stderr = log, log
	m.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}

	started := make(chan error)
	go func() {
		// The kernel sends Pdeathsig when the thread that started the process ends, not when the process of that thread ends.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := m.cmd.Start()
		started <- err
		if err == nil {
			m.exitError = m.cmd.Wait()
			close(m.exited)
		}
	}()
	if err := <-started; err != nil {
		return nil, fmt.Errorf("cannot start the manager (make build makes it): %w", err)
	}
	return m, nil
}

// WaitReady waits until the manager is ready.
func (m *Manager) WaitReady(ctx context.Context) error {
	url := "http://" + m.healthAddress + "/readyz"
	var last string
	err := wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		select {
		case <-m.exited:
			return false, fmt.Errorf("the manager has exited: %w", m.exitError)
		default:
		}
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			return false, err
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			last = err.Error()
			return false, nil //nolint:nilerr // It does not listen yet.
		}
		_ = resp.Body.Close()
		last = resp.Status
		return resp.StatusCode == http.StatusOK, nil
	})
	if err != nil {
		return fmt.Errorf("the manager does not become ready (%s): %w\n%s", last, err, m.LogTail(20))
	}
	return nil
}

// Stop asks the manager to end and waits until it has ended, as a rollout does.
func (m *Manager) Stop(ctx context.Context) error {
	if err := m.cmd.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("cannot signal the manager: %w", err)
	}
	select {
	case <-m.exited:
		return m.exitError
	case <-ctx.Done():
		return errors.Join(fmt.Errorf("the manager does not end: %w", context.Cause(ctx)), m.Kill())
	}
}

// Kill ends the manager at once, as a crash does.
func (m *Manager) Kill() error {
	if err := m.cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("cannot kill the manager: %w", err)
	}
	<-m.exited
	return nil
}

// Freeze stops the process without ending it, as a node that hangs does, and Thaw continues it.
func (m *Manager) Freeze() error { return m.cmd.Process.Signal(syscall.SIGSTOP) }

// Thaw continues a process that Freeze has stopped.
func (m *Manager) Thaw() error { return m.cmd.Process.Signal(syscall.SIGCONT) }

// Alive reports whether the process runs.
func (m *Manager) Alive() bool {
	select {
	case <-m.exited:
		return false
	default:
		return true
	}
}

// Exited is closed when the process has ended.
func (m *Manager) Exited() <-chan struct{} { return m.exited }

// PID is the ID of the process.
func (m *Manager) PID() int { return m.cmd.Process.Pid }

// MetricsAddress is the address at which the process serves its metrics.
func (m *Manager) MetricsAddress() string { return m.metricsAddress }

// ResidentBytes is the memory that the process occupies now.
func (m *Manager) ResidentBytes() (int64, error) {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", m.cmd.Process.Pid))
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(data)) {
		if rest, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			kib, err := strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
			return kib << 10, err
		}
	}
	return 0, errors.New("the kernel does not say how much memory the manager has")
}

// LogTail returns the last lines of the manager's log.
func (m *Manager) LogTail(lines int) string {
	data, err := os.ReadFile(m.LogPath)
	if err != nil {
		return err.Error()
	}
	all := strings.Split(strings.TrimRight(string(data), "\n"), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}

// binary is the manager that is started: bin/manager, or another one that the environment names, to test another build.
func binary(repository string) string {
	if path := os.Getenv("MASTHEAD_MANAGER_BIN"); path != "" {
		return path
	}
	return filepath.Join(repository, "bin", "manager")
}

// FreeAddress is an address of this machine at which no process listens now.
func FreeAddress() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("cannot find a free port: %w", err)
	}
	defer func() { _ = l.Close() }()
	return l.Addr().String(), nil
}
