// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"math"
	"os"
	"runtime/debug"
	"testing"
	"testing/fstest"

	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/yaml"
)

func files(of map[string]string) fstest.MapFS {
	root := fstest.MapFS{}
	for name, text := range of {
		root[name] = &fstest.MapFile{Data: []byte(text)}
	}
	return root
}

func TestCgroupLimit(t *testing.T) {
	const gib = "1073741824\n"
	for name, tc := range map[string]struct {
		reason string
		files  map[string]string
		want   int64
	}{
		"None":      {"Outside of Linux there is none.", nil, 0},
		"V2":        {"In a container, the group is the root.", map[string]string{"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/memory.max": gib}, 1 << 30},
		"V2Max":     {"No limit is written as max.", map[string]string{"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/memory.max": "max\n"}, 0},
		"V2HostNS":  {"The path can be the host's.", map[string]string{"proc/self/cgroup": "0::/kubepods/pod1\n", "sys/fs/cgroup/memory.max": gib}, 1 << 30},
		"V2Nested":  {"The lowest of all groups counts.", map[string]string{"proc/self/cgroup": "0::/a/b\n", "sys/fs/cgroup/a/memory.max": gib, "sys/fs/cgroup/a/b/memory.max": "2147483648"}, 1 << 30},
		"V1":        {"Version 1 has a hierarchy for memory.", map[string]string{"proc/self/cgroup": "5:cpu,cpuacct:/x\n4:memory:/docker/1\n", "sys/fs/cgroup/memory/docker/1/memory.limit_in_bytes": gib}, 1 << 30},
		"V1Max":     {"No limit is a very large number.", map[string]string{"proc/self/cgroup": "4:memory:/\n", "sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n"}, 0},
		"Hybrid":    {"Both may be there.", map[string]string{"proc/self/cgroup": "4:memory:/\n0::/\n", "sys/fs/cgroup/memory/memory.limit_in_bytes": gib, "sys/fs/cgroup/memory.max": "max"}, 1 << 30},
		"Nonsense":  {"What cannot be read is no limit.", map[string]string{"proc/self/cgroup": "hello\n0::/\n", "sys/fs/cgroup/memory.max": "-5"}, 0},
		"UpAndAway": {"A path does not lead out.", map[string]string{"proc/self/cgroup": "0::/../../etc\n", "sys/fs/cgroup/memory.max": gib}, 1 << 30},
	} {
		t.Run(name, func(t *testing.T) {
			if got := cgroupLimit(files(tc.files)); got != tc.want {
				t.Errorf("%s\nwant %d, got %d", tc.reason, tc.want, got)
			}
		})
	}
}

func TestMemoryIsLimitedBelowTheContainer(t *testing.T) {
	before := debug.SetMemoryLimit(math.MaxInt64)
	t.Cleanup(func() { debug.SetMemoryLimit(before) })
	root := files(map[string]string{"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/memory.max": "1000000000"})
	if got := limitMemory(root); got != 900_000_000 || debug.SetMemoryLimit(-1) != got {
		t.Errorf("want 90 percent of the container's memory, got %d", got)
	}
	debug.SetMemoryLimit(5 << 30)
	if got := limitMemory(root); got != 5<<30 || debug.SetMemoryLimit(-1) != got {
		t.Errorf("what the operator says by GOMEMLIMIT counts, got %d", got)
	}
	for limit, want := range map[int64]int64{0: unlimitedBudget, 100 << 20: minBudget, 12 << 30: 1 << 30} {
		if got := budgetOf(limit); got != want {
			t.Errorf("with %d bytes of memory: want a budget of %d, got %d", limit, want, got)
		}
	}
}

// TestDeploymentLeavesTheHeapToTheManager: GOMEMLIMIT in the manifest would stay the same when somebody raises or
// lowers the container's limit, and without a limit there is nothing that the budget could be a part of.
func TestDeploymentLeavesTheHeapToTheManager(t *testing.T) {
	text, err := os.ReadFile("../../config/manager/deployment.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var deployment appsv1.Deployment
	if err := yaml.UnmarshalStrict(text, &deployment); err != nil {
		t.Fatal(err)
	}
	containers := deployment.Spec.Template.Spec.Containers
	if len(containers) != 1 {
		t.Fatalf("want one container, got %d", len(containers))
	}
	for _, env := range containers[0].Env {
		if env.Name == "GOMEMLIMIT" {
			t.Error("the manifest sets GOMEMLIMIT")
		}
	}
	limit := containers[0].Resources.Limits.Memory().Value()
	if limit <= 0 {
		t.Fatal("want a memory limit")
	}
	if got := budgetOf(limit / 100 * heapPercent); got <= minBudget {
		t.Errorf("want the shipped limit to leave clusters more than the least, got %d bytes", got)
	}
}
