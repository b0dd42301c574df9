// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"

	"github.com/masthead-dev/masthead/internal/test/hostile"
)

// serveCommand is the argument with which this program serves as the hostile API servers, and measures nothing.
const serveCommand = "serve-hostile"

// servers are the hostile API servers, in their own process: in that of the benchmark their work would delay the
// watches by which latencies are measured. The process has the lowest priority, because the API servers that it stands
// for run on machines of other people, and not on the cores of the hub.
type servers struct {
	attacks []hostile.Attack
	// kubeconfigs are by the name of the attack.
	kubeconfigs map[string][]byte

	command *exec.Cmd
	stop    io.Closer
	answers *json.Decoder
}

// startServers starts one for each attack.
func startServers(ctx context.Context, attacks []hostile.Attack) (s *servers, err error) {
	program, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("cannot find this program: %w", err)
	}
	args := []string{"-n", "19", program, serveCommand}
	for _, a := range attacks {
		args = append(args, a.Name)
	}
	// The process ends when its standard input is closed, which also happens when this process is killed.
	command := exec.CommandContext(ctx, "nice", args...)
	command.Stderr = os.Stderr
	stop, err := command.StdinPipe()
	if err != nil {
		return nil, err
	}
	answers, err := command.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := command.Start(); err != nil {
		return nil, fmt.Errorf("cannot start the hostile API servers: %w", err)
	}
	s = &servers{attacks: attacks, command: command, stop: stop, answers: json.NewDecoder(answers)}
	if err := s.answers.Decode(&s.kubeconfigs); err != nil {
		_, closeErr := s.close()
		return nil, errors.Join(fmt.Errorf("cannot start the hostile API servers: %w", err), closeErr)
	}
	return s, nil
}

// pid is the ID of the process.
func (s *servers) pid() int { return s.command.Process.Pid }

// close ends all of them. It returns how many requests arrived at the addresses to which they had sent their clients.
func (s *servers) close() (trapped int, err error) {
	err = s.stop.Close()
	decodeErr := s.answers.Decode(&trapped)
	return trapped, errors.Join(err, decodeErr, s.command.Wait())
}

// serve is the other side of startServers: it prints the kubeconfigs and, when its input ends, the number that close
// returns.
func serve(ctx context.Context, names []string, in io.Reader, out io.Writer) (err error) {
	kubeconfigs := map[string][]byte{}
	var running []*hostile.Server
	defer func() {
		for _, s := range running {
			s.Close()
		}
	}()
	for _, name := range names {
		attack, ok := hostile.Named(name)
		if !ok {
			return fmt.Errorf("there is no attack %q", name)
		}
		s, err := hostile.Start(ctx, attack, hostile.Options{})
		if err != nil {
			return err
		}
		running = append(running, s)
		kubeconfigs[name] = s.Kubeconfig()
	}
	answers := json.NewEncoder(out)
	if err := answers.Encode(kubeconfigs); err != nil {
		return err
	}
	if _, err := io.Copy(io.Discard, in); err != nil {
		return err
	}
	trapped := 0
	for _, s := range running {
		trapped += s.Trapped()
	}
	return answers.Encode(trapped)
}
