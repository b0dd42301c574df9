// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"math"
	"os"
	"runtime/debug"
	"testing"

	"github.com/KimMachineGun/automemlimit/memlimit"
	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/yaml"
)

func TestMemoryIsLimitedBelowTheContainer(t *testing.T) {
	before := debug.SetMemoryLimit(math.MaxInt64)
	t.Cleanup(func() { debug.SetMemoryLimit(before) })
	unlimited := func() (uint64, error) { return 0, memlimit.ErrNoLimit }
	unknown := func() (uint64, error) { return 0, errors.New("no control group") }

	if got, err := limitMemory(unlimited); got != 0 || err != nil {
		t.Errorf("without a limit: want none, got %d, %v", got, err)
	}
	if got, err := limitMemory(unknown); got != 0 || err == nil {
		t.Errorf("where the limit cannot be read: want none and an error, got %d, %v", got, err)
	}
	if got, err := limitMemory(memlimit.Limit(1_000_000_000)); got != 900_000_000 || debug.SetMemoryLimit(-1) != got || err != nil {
		t.Errorf("want 90 percent of the container's memory, got %d, %v", got, err)
	}
	t.Setenv("GOMEMLIMIT", "5GiB") // The runtime has read it when the process begins.
	debug.SetMemoryLimit(5 << 30)
	if got, err := limitMemory(memlimit.Limit(1_000_000_000)); got != 5<<30 || debug.SetMemoryLimit(-1) != got || err != nil {
		t.Errorf("what the operator says by GOMEMLIMIT counts, got %d, %v", got, err)
	}
	for limit, want := range map[int64]int64{0: unlimitedBudget, 100 << 20: minBudget, 12 << 30: 1 << 30} {
		if got := memoryBudget(limit); got != want {
			t.Errorf("with %d bytes of memory: want a budget of %d, got %d", limit, want, got)
		}
	}
}

// TestDeploymentLeavesTheHeapToTheManager: GOMEMLIMIT in the manifest would stay the same when the container's limit
// is raised or lowered, and without a limit there is nothing that the budget could be a part of.
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
	if got := memoryBudget(limit / 100 * heapPercent); got <= minBudget {
		t.Errorf("want the shipped limit to leave clusters more than the least, got %d bytes", got)
	}
}
