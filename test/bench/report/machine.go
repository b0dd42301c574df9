// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
)

// Machine describes the machine on which the figures were measured, and the commit.
func Machine(ctx context.Context) string {
	memory := ""
	if info, err := os.ReadFile("/proc/meminfo"); err == nil {
		fields := strings.Fields(string(info))
		if kib, err := strconv.ParseInt(fields[1], 10, 64); err == nil {
			memory = fmt.Sprintf(", %d GiB", (kib+1<<19)>>20)
		}
	}
	commit, err := exec.CommandContext(ctx, "git", "describe", "--always", "--dirty").Output()
	if err != nil {
		commit = []byte("unknown")
	}
	return fmt.Sprintf("%s/%s, %d cores%s, %s, commit %s", runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), memory, runtime.Version(), strings.TrimSpace(string(commit)))
}
