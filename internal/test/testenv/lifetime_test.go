// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package testenv

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// folderEnv is set to a folder in the process that TestServersEndWithTests kills.
const folderEnv = "MASTHEAD_TESTENV_FOLDER"

func TestServersEndWithTests(t *testing.T) {
	if folder := os.Getenv(folderEnv); folder != "" {
		t.Fatal(waitToBeKilled(t.Context(), folder))
	}
	folder := filepath.Join(t.TempDir(), "with a space", "k8s_test_framework_1")
	if err := os.MkdirAll(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	tests := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestServersEndWithTests$")
	tests.Env = append(os.Environ(), folderEnv+"="+folder)
	output, err := tests.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := tests.Start(); err != nil {
		t.Fatal(err)
	}
	server, err := bufio.NewReader(output).ReadString('\n')
	if err != nil {
		t.Fatalf("The tests do not say what they have started: %v", err)
	}
	server = strings.TrimSpace(server)
	t.Cleanup(func() { _ = exec.Command("kill", "-KILL", "--", "-"+server).Run() }) // The group, which should be gone.
	if !runs(server) {
		t.Fatalf("Process %q does not run.", server)
	}

	if err := tests.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = tests.Wait()
	left := func(context.Context) (bool, error) {
		_, err := os.Stat(folder)
		return !runs(server) && os.IsNotExist(err), nil
	}
	if err := Poll(t.Context(), Patience, left); err != nil {
		t.Errorf("The server still runs (%t), or its folder is still there: %v", runs(server), err)
	}
}

// waitToBeKilled starts what looks like etcd, prints its process ID, and waits.
func waitToBeKilled(ctx context.Context, folder string) error {
	for range 2 { // As for two environments.
		if err := endWithTests(); err != nil {
			return err
		}
	}
	// Not a single command, for which the shell would be replaced.
	server := exec.CommandContext(ctx, "/bin/sh", "-c", "sleep 600; exit", "etcd", "--data-dir="+folder)
	server.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := server.Start(); err != nil {
		return err
	}
	fmt.Println(server.Process.Pid)
	return server.Wait()
}

// runs reports whether a process runs, and is not a zombie.
func runs(pid string) bool {
	stat, err := os.ReadFile(filepath.Join("/proc", pid, "stat"))
	if err != nil {
		return false
	}
	_, after, _ := strings.Cut(string(stat), ") ")
	return !strings.HasPrefix(after, "Z")
}
