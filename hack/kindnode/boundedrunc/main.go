// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

// Command boundedrunc is runc for machines whose processes lack capabilities, as some containers and virtual machines
// do. A privileged container of Docker requests every capability that the kernel knows, and runc then fails with
// "unable to apply caps: operation not permitted". This command removes the capabilities that no process here can have
// from the configuration of a container or process, and then executes runc.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// capabilities are the names that the kernel gives to its numbers, in their order.
var capabilities = strings.Fields(`CHOWN DAC_OVERRIDE DAC_READ_SEARCH FOWNER FSETID KILL SETGID SETUID SETPCAP
	LINUX_IMMUTABLE NET_BIND_SERVICE NET_BROADCAST NET_ADMIN NET_RAW IPC_LOCK IPC_OWNER SYS_MODULE SYS_RAWIO SYS_CHROOT
	SYS_PTRACE SYS_PACCT SYS_ADMIN SYS_BOOT SYS_NICE SYS_RESOURCE SYS_TIME SYS_TTY_CONFIG MKNOD LEASE AUDIT_WRITE
	AUDIT_CONTROL SETFCAP MAC_OVERRIDE MAC_ADMIN SYSLOG WAKE_ALARM BLOCK_SUSPEND AUDIT_READ PERFMON BPF
	CHECKPOINT_RESTORE`)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "boundedrunc:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if path := configuration(args); path != "" {
		status, err := os.ReadFile("/proc/self/status")
		if err != nil {
			return fmt.Errorf("cannot read the capabilities of this process: %w", err)
		}
		bounding, err := boundingSet(string(status))
		if err != nil {
			return err
		}
		if err := boundFile(path, bounding); err != nil {
			return fmt.Errorf("cannot take capabilities out of %q: %w", path, err)
		}
	}
	runc, err := exec.LookPath("runc")
	if err != nil {
		return fmt.Errorf("cannot find runc: %w", err)
	}
	return syscall.Exec(runc, append([]string{runc}, args...), os.Environ()) //nolint:gosec // What it is for.
}

// configuration is the file with the requested capabilities, or "" if the command starts nothing.
func configuration(args []string) string {
	verb, values := "", map[string]string{}
	for i, arg := range args {
		if slices.Contains([]string{"create", "run", "exec"}, arg) && verb == "" {
			verb = arg
		}
		name, value, joined := strings.Cut(arg, "=")
		if !joined && i+1 < len(args) {
			value = args[i+1]
		}
		switch name {
		case "--bundle", "-b":
			values["bundle"] = value
		case "--process", "-p":
			values["process"] = value
		}
	}
	switch verb {
	case "create", "run":
		return filepath.Join(values["bundle"], "config.json")
	case "exec":
		return values["process"]
	}
	return ""
}

// boundingSet is the set of the capabilities that a process here can have at all.
func boundingSet(status string) (map[string]bool, error) {
	for line := range strings.Lines(status) {
		value, ok := strings.CutPrefix(line, "CapBnd:")
		if !ok {
			continue
		}
		mask, err := strconv.ParseUint(strings.TrimSpace(value), 16, 64)
		if err != nil {
			return nil, fmt.Errorf("cannot read the bounding set: %w", err)
		}
		set := map[string]bool{}
		for i, name := range capabilities {
			set["CAP_"+name] = mask>>i&1 == 1
		}
		return set, nil
	}
	return nil, errors.New("the kernel does not say which capabilities there are")
}

// boundFile removes the capabilities that are not in the set from a file. The rest of the file is kept as it is, byte
// by byte.
func boundFile(path string, bounding map[string]bool) error {
	content, err := os.ReadFile(path) //nolint:gosec // Named by containerd.
	if err != nil {
		return err
	}
	bounded, err := bound(content, bounding)
	if err != nil {
		return err
	}
	return os.WriteFile(path, bounded, 0o600) //nolint:gosec // The same file.
}

// bound removes capabilities that are not in the set from a container's config.json or a process.json.
func bound(content []byte, bounding map[string]bool) ([]byte, error) {
	var document map[string]json.RawMessage
	if err := json.Unmarshal(content, &document); err != nil {
		return nil, err
	}
	if process, ok := document["process"]; ok {
		inner, err := bound(process, bounding)
		if err != nil {
			return nil, err
		}
		document["process"] = inner
		return json.Marshal(document)
	}
	wanted, ok := document["capabilities"]
	if !ok {
		return content, nil
	}
	var sets map[string][]string
	if err := json.Unmarshal(wanted, &sets); err != nil {
		return nil, err
	}
	for name, set := range sets {
		sets[name] = slices.DeleteFunc(set, func(c string) bool { return !bounding[c] })
	}
	var err error
	if document["capabilities"], err = json.Marshal(sets); err != nil {
		return nil, err
	}
	return json.Marshal(document)
}
