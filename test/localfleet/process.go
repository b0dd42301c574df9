// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package localfleet

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

// Names of the processes of a cluster.
const (
	Etcd              = "etcd"
	APIServer         = "kube-apiserver"
	ControllerManager = "kube-controller-manager"
	Kwok              = "kwok"
	Crossplane        = "crossplane"
	ClusterAPI        = "cluster-api"
	Function          = "localfleet-function"
)

// programs are the files that have to be in the folder of binaries. Each process has the name of its program.
var programs = []string{Etcd, APIServer, ControllerManager, Kwok, Crossplane, ClusterAPI, Function}

const (
	readyTimeout  = 3 * time.Minute // an unloaded machine needs seconds
	readyInterval = 100 * time.Millisecond
	// attemptTimeout limits one check of a server, which may accept connections long before it answers.
	attemptTimeout = 5 * time.Second
	// portAttempts is how many ports are tried when other programs take the chosen ones first.
	portAttempts = 5
	// addressInUse is what every program prints if it cannot bind its port.
	addressInUse = "address already in use"
	logTailBytes = 2000
)

// server describes how to run one process of a cluster.
type server struct {
	program string
	// ports are the names of the ports that it listens on; they are chosen before arguments is called.
	ports []string
	// arguments returns the command line for the chosen ports.
	arguments func(ports map[string]int) []string
	// environment is added to the few variables that every process gets.
	environment []string
	// ready returns nil if the process works, else why it does not. If ready is nil, it is enough that the process runs.
	ready func(ctx context.Context, ports map[string]int) error
}

// startServer starts a process and waits until it is ready. Ports that the cluster already has are used again; ports
// that are chosen here are chosen again if another program took one first.
func (c *cluster) startServer(ctx context.Context, s server) error {
	for attempt := 1; ; attempt++ {
		chosen, err := c.choosePorts(s.ports)
		if err != nil {
			return err
		}
		err = c.startOnce(ctx, s)
		if err == nil {
			return nil
		}
		if !errors.Is(err, errAddressInUse) || len(chosen) == 0 || attempt == portAttempts {
			return err
		}
		c.fleet.logf("%s: the port of %s was taken by another program, trying another", c.name, s.program)
		c.forgetPorts(chosen)
	}
}

var errAddressInUse = errors.New(addressInUse)

func (c *cluster) startOnce(ctx context.Context, s server) error {
	record, offset, err := c.launch(s)
	if err == nil && s.ready != nil {
		err = c.waitReady(ctx, s, record, offset)
	}
	// A process that runs and does not become ready is left to the caller, which decides what to do with the whole
	// cluster.
	if err != nil && !record.alive() && strings.Contains(err.Error(), addressInUse) {
		return fmt.Errorf("%w: %w", errAddressInUse, err)
	}
	return err
}

// launch starts the process and records it. It returns the offset in the process's log at which this run begins.
func (c *cluster) launch(s server) (processRecord, int64, error) {
	path := filepath.Join(c.fleet.state.BinDir, s.program)
	logPath := c.fleet.layout.log(c.name, s.program)
	log, err := os.OpenFile(logPath, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return processRecord{}, 0, fmt.Errorf("cannot open the log of %s: %w", s.program, err)
	}
	defer func() { _ = log.Close() }()
	offset, err := log.Seek(0, 2)
	if err != nil {
		return processRecord{}, 0, fmt.Errorf("cannot open the log of %s: %w", s.program, err)
	}

	command := exec.Command(path, s.arguments(c.ports())...)
	command.Dir = c.fleet.layout.cluster(c.name)
	command.Stdout, command.Stderr = log, log
	// The process inherits nothing else: a proxy, a KUBECONFIG or a GODEBUG of the user must not change the fleet.
	command.Env = append([]string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + c.fleet.layout.cluster(c.name), "TMPDIR=" + os.TempDir(),
		environmentMarker + "=" + c.fleet.layout.dir,
	}, s.environment...)
	if err = c.fleet.spawner.start(command); err != nil {
		return processRecord{}, 0, fmt.Errorf("cannot start %s of cluster %q: %w", s.program, c.name, err)
	}
	identity, err := identify(command.Process.Pid)
	if err != nil {
		return processRecord{}, 0, fmt.Errorf("%s of cluster %q ended at once: %w%s", s.program, c.name, err, logTail(logPath, offset))
	}
	record := processRecord{processIdentity: identity, Name: s.program, Log: logPath}
	return record, offset, c.update(func(state *clusterState) { state.setProcess(record) })
}

func (c *cluster) waitReady(ctx context.Context, s server, record processRecord, offset int64) error {
	last := errors.New("it was not looked at yet")
	err := wait.PollUntilContextTimeout(ctx, readyInterval, readyTimeout, true, func(ctx context.Context) (bool, error) {
		if !record.alive() {
			return false, errors.New("the process has ended")
		}
		attempt, cancel := context.WithTimeout(ctx, attemptTimeout)
		defer cancel()
		if err := s.ready(attempt, c.ports()); err != nil {
			last = err
			return false, nil
		}
		// The answer must have come from this process, not from another program on a port that this process failed to bind.
		return record.alive(), nil
	})
	if err != nil {
		return fmt.Errorf("%s of cluster %q did not become ready: %w; last: %w%s", s.program, c.name, err, last, logTail(record.Log, offset))
	}
	return nil
}

// logTail returns the end of what was written to a log since offset, for an error message.
func logTail(path string, offset int64) string {
	file, err := os.Open(path)
	if err != nil {
		return fmt.Sprintf(" (there is no log: %v)", err)
	}
	defer func() { _ = file.Close() }()
	info, err := file.Stat()
	if err != nil {
		return fmt.Sprintf(" (there is no log: %v)", err)
	}
	offset = max(offset, info.Size()-logTailBytes)
	tail := make([]byte, max(info.Size()-offset, 0))
	n, _ := file.ReadAt(tail, offset)
	if n == 0 {
		return fmt.Sprintf(" (its log %s is empty)", path)
	}
	return fmt.Sprintf("; the end of its log %s:\n%s", path, strings.TrimSpace(string(tail[:n])))
}
