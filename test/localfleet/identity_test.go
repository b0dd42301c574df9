// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package localfleet

import (
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestParseProcStat(t *testing.T) {
	const rest = " S 1 42 42 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 9 0 987654 1 2 3"
	type want struct {
		State     string
		Ended     bool
		StartTime uint64
		Err       bool
	}
	cases := map[string]struct {
		reason  string
		content string
		want    want
	}{
		"Plain":       {reason: "The start time is the 22nd field.", content: "42 (etcd)" + rest, want: want{State: "S", StartTime: 987654}},
		"Blank":       {reason: "A program's name may contain blanks.", content: "42 (my prog)" + rest, want: want{State: "S", StartTime: 987654}},
		"Parentheses": {reason: "A program's name may pretend to end early.", content: "42 (x) R 1 (y)" + rest, want: want{State: "S", StartTime: 987654}},
		"Zombie":      {reason: "A zombie without threads has ended.", content: "42 (e) Z 1 42 42 0 -1 4 1 2 3 4 5 6 7 8 20 0 1 0 987654 1", want: want{State: "Z", Ended: true, StartTime: 987654}},
		"Ending":      {reason: "The threads of a zombie can have sockets.", content: "42 (e) Z 1 42 42 0 -1 4 1 2 3 4 5 6 7 8 20 0 9 0 987654 1", want: want{State: "Z", StartTime: 987654}},
		"Short":       {reason: "A line that ends early is refused.", content: "42 (etcd) S 1 2", want: want{Err: true}},
		"Nameless":    {reason: "A line without a name is refused.", content: "42 etcd S", want: want{Err: true}},
		"NoNumber":    {reason: "A start time that is no number is refused.", content: "42 (e) S 1 42 42 0 -1 4 1 2 3 4 5 6 7 8 20 0 9 0 x 1", want: want{Err: true}},
		"Empty":       {reason: "An empty file is refused.", want: want{Err: true}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			stat, err := parseProcStat(tc.content)
			got := want{Err: err != nil}
			if err == nil {
				got.State, got.Ended, got.StartTime = string(stat.state), stat.hasEnded(), stat.startTime
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\nparseProcStat(): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestIdentityOfRecycledPID: a state file may outlive its processes, and the kernel gives their ids to other processes.
// The fleet must not take such a process for the recorded one, and must not signal it.
func TestIdentityOfRecycledPID(t *testing.T) {
	other := startSleeper(t, nil)
	cases := map[string]struct {
		reason string
		change func(*processIdentity)
		want   processState
	}{
		"Same":            {reason: "The process itself is recognised.", change: func(*processIdentity) {}, want: stateRunning},
		"OtherStartTime":  {reason: "A process with this id that started at another time is another.", change: func(p *processIdentity) { p.StartTime-- }, want: stateExited},
		"OtherExecutable": {reason: "A process with this id that runs another program is another.", change: func(p *processIdentity) { p.Executable = "/usr/bin/etcd" }, want: stateExited},
		"OtherBoot":       {reason: "Ids and start times begin again when the machine starts.", change: func(p *processIdentity) { p.BootID = "another" }, want: stateExited},
		"NoPID":           {reason: "Zero and negative ids mean groups of processes to kill(2).", change: func(p *processIdentity) { p.PID = -1 }, want: stateExited},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			recorded := other
			tc.change(&recorded)
			if got := recorded.state(); got != tc.want {
				t.Errorf("%s\nstate(): want %s, got %s", tc.reason, tc.want, got)
			}
			if tc.want == stateRunning {
				return
			}
			if err := stopProcess(t.Context(), recorded, time.Minute); err != nil {
				t.Errorf("%s\nstopProcess(): want no error for a process that is gone, got %v", tc.reason, err)
			}
			if !other.alive() {
				t.Fatalf("%s\nstopProcess(): ended another process", tc.reason)
			}
		})
	}
}

func TestIdentityOfZombie(t *testing.T) {
	command := exec.Command("sleep", "1000")
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	identity, err := identify(command.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	// The process is not waited for, so it stays in the process table, as it would in a container whose first process does
	// not reap its children.
	if err := waitExited(t.Context(), identity, killGrace); err != nil {
		t.Errorf("a process that was killed and not reaped: want state %s, got %s", stateExited, identity.state())
	}
	if _, err := readProcStat(identity.PID); err != nil {
		t.Errorf("the zombie should still be in the process table: %v", err)
	}
	_ = command.Wait()
}

// TestIdentityOfReplacedProgram: a build replaces the file of a program that runs; the process is still ours.
func TestIdentityOfReplacedProgram(t *testing.T) {
	program := copyOfSleep(t, Etcd)
	identity := startCommand(t, exec.Command(program, "1000"), nil)
	if err := os.Remove(program); err != nil {
		t.Fatal(err)
	}
	if got := identity.state(); got != stateRunning {
		t.Errorf("state(): want %s after the program's file was removed, got %s", stateRunning, got)
	}
	if again, err := identify(identity.PID); err != nil || again != identity {
		t.Errorf("identify(): want %+v, got %+v, %v", identity, again, err)
	}
}

func TestStopProcess(t *testing.T) {
	cases := map[string]struct {
		reason string
		script string
		paused bool
		grace  time.Duration
	}{
		"Obedient": {reason: "A process that ends on a signal is not killed.", script: "trap 'exit 0' TERM; echo ready; while :; do sleep 0.1; done", grace: time.Minute},
		"Stubborn": {reason: "A process that ignores the request is killed after the grace period.", script: "trap '' TERM; echo ready; while :; do sleep 0.1; done", grace: 100 * time.Millisecond},
		"Paused":   {reason: "A paused process is continued, so that it hears the request.", script: "trap 'exit 0' TERM; echo ready; while :; do sleep 0.1; done", paused: true, grace: time.Minute},
		"AtOnce":   {reason: "Without a grace period a process is killed, even a paused one.", script: "trap '' TERM; echo ready; while :; do sleep 0.1; done", paused: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			process := startScript(t, tc.script)
			if tc.paused {
				if err := process.signal(syscall.SIGSTOP); err != nil {
					t.Fatal(err)
				}
				waitState(t, process, statePaused)
			}
			if err := stopProcess(t.Context(), process, tc.grace); err != nil {
				t.Errorf("%s\nstopProcess(): %v", tc.reason, err)
			}
			if process.alive() {
				t.Errorf("%s\nstopProcess(): the process is still %s", tc.reason, process.state())
			}
		})
	}
}

func TestLeftovers(t *testing.T) {
	dir := t.TempDir()
	program := copyOfSleep(t, Etcd)
	marker := environmentMarker + "=" + dir
	ours := startCommand(t, exec.Command(program, "1000"), []string{marker})
	startCommand(t, exec.Command(program, "1000"), []string{marker + "/other"})
	startCommand(t, exec.Command(program, "1000"), nil)
	startSleeper(t, []string{marker}) // no program of a fleet

	got, err := leftovers(dir)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]processIdentity{ours}, got); diff != "" {
		t.Errorf("leftovers(): only the fleet's own programs with the fleet's folder in their environment: -want, +got:\n%s", diff)
	}
}

// copyOfSleep returns a program that stands in for one of the fleet.
func copyOfSleep(t *testing.T, name string) string {
	t.Helper()
	sleep, err := exec.LookPath("sleep")
	if err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(sleep)
	if err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(program, content, 0o700); err != nil {
		t.Fatal(err)
	}
	return program
}

// startSleeper starts a process that does nothing.
func startSleeper(t *testing.T, environment []string) processIdentity {
	t.Helper()
	return startCommand(t, exec.Command("sleep", "1000"), environment)
}

// startScript starts a shell script and returns when it has printed something.
func startScript(t *testing.T, script string) processIdentity {
	t.Helper()
	command := exec.Command("sh", "-c", script)
	output, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	identity := startCommand(t, command, nil)
	if _, err := output.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	return identity
}

func startCommand(t *testing.T, command *exec.Cmd, environment []string) processIdentity {
	t.Helper()
	command.Env = append([]string{"PATH=" + os.Getenv("PATH")}, environment...)
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	identity, err := identify(command.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = command.Wait()
	}()
	t.Cleanup(func() {
		_ = command.Process.Kill()
		<-done
	})
	return identity
}

func waitState(t *testing.T, process processIdentity, want processState) {
	t.Helper()
	eventually(t, "the process is "+string(want), func() bool { return process.state() == want })
}
