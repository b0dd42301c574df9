// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/masthead-dev/masthead/test/bench/apiserver"
	"github.com/masthead-dev/masthead/test/bench/claims"
	"github.com/masthead-dev/masthead/test/bench/report"
)

// padding is the size of what makes an object large: nearly the most that an API server takes in annotations.
const padding = 250 << 10

// atOnce is how many rounds are in progress.
const atOnce = 4

// hubRun measures what objects in the hub cost the manager: those that claims leave there when they are orphaned, again
// and again, and those that a tenant of the hub creates, half of which name an enrolled cluster as their source.
func hubRun(ctx context.Context, s settings, machine func() string) (text string, err error) {
	w, err := newWorld(ctx, s)
	if w != nil {
		defer func() { err = errors.Join(err, w.down(ctx)) }()
	}
	if err != nil {
		return "", err
	}
	table := report.Table{Title: "The manager and the hub's claims", Header: []string{"", "resident", "heap in use", "kept whole"}}
	add := func(name string) error {
		// Claims are carried first: a manager at rest does not collect its garbage.
		if _, err := w.pace(ctx, s, strings.ReplaceAll(name, " ", "-"), s.lead); err != nil {
			return err
		}
		r, err := w.rest(ctx)
		if err != nil {
			return err
		}
		m, err := w.manager.Metrics(ctx)
		table.Add(name, report.Mebibytes(r.resident), report.Mebibytes(r.inUse.Heap), report.Mebibytes(int64(m.Value("masthead_agent_hub_memory_bytes"))))
		fmt.Fprintf(os.Stderr, "%s: %s resident\n", name, report.Mebibytes(r.resident))
		return err
	}
	identifier, err := w.identifier(ctx)
	if err != nil {
		return "", err
	}
	for _, step := range []func() error{
		func() error { return add("before") },
		func() error { return rounds(ctx, s.hub, w.orphan) },
		func() error { return add(fmt.Sprintf("%d claims created and orphaned", s.hub)) },
		func() error {
			return rounds(ctx, s.hub, func(ctx context.Context, i int) error { return w.direct(ctx, i, identifier) })
		},
		func() error { return add(fmt.Sprintf("%d objects created in the hub", s.hub)) },
	} {
		if err = step(); err != nil {
			break
		}
	}
	return fmt.Sprintf("%s. %d KiB in each object, GOMEMLIMIT %s.\n\n%s", machine(), padding>>10, s.memoryLimit, table.String()), err
}

// rounds calls do n times, some at once.
func rounds(ctx context.Context, n int, do func(context.Context, int) error) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(atOnce)
	for i := range n {
		group.Go(func() error { return do(ctx, i) })
	}
	return group.Wait()
}

// large is a claim with annotations and the padding.
func (w *world) large(name string, annotations map[string]string) ([]byte, error) {
	claim := map[string]any{}
	if err := json.Unmarshal(w.kind.Claim(name), &claim); err != nil {
		return nil, err
	}
	annotations["bench.example.org/padding"] = strings.Repeat("x", padding)
	claim["metadata"].(map[string]any)["annotations"] = annotations
	return json.Marshal(claim)
}

// orphan creates a large claim, and deletes it when it is in the hub, where its object stays.
func (w *world) orphan(ctx context.Context, i int) error {
	name, workload := fmt.Sprintf("orphan-%d", i), w.workloads[i%len(w.workloads)]
	claim, err := w.large(name, map[string]string{"agent.masthead.dev/deletion-policy": "Orphan"})
	if err != nil {
		return err
	}
	if err := workload.Create(ctx, w.kind.Collection(claims.Namespace), claim); err != nil {
		return err
	}
	there := w.kind.Collection(claims.Target) + "/" + name
	if err := w.hub.WaitServed(ctx, there); err != nil {
		return err
	}
	here := w.kind.Collection(claims.Namespace) + "/" + name
	if err := workload.Remove(ctx, here); err != nil {
		return err
	}
	return until(ctx, func() (bool, error) {
		err := workload.Get(ctx, here, &apiserver.Meta{})
		if errors.Is(err, apiserver.ErrNotFound) {
			return true, nil
		}
		return false, err
	})
}

// direct creates an object in the hub, as the owner of a namespace there can.
func (w *world) direct(ctx context.Context, i int, identifier string) error {
	annotations := map[string]string{}
	if i%2 == 0 {
		annotations["agent.crossplane.io/source-uid"] = identifier
		annotations["agent.crossplane.io/source-namespace"] = "default"
	}
	object, err := w.large(fmt.Sprintf("direct-%d", i), annotations)
	if err != nil {
		return err
	}
	return w.hub.Create(ctx, w.kind.Collection("default"), object)
}

// identifier is that of the first honest cluster: the UID of its namespace kube-system.
func (w *world) identifier(ctx context.Context) (string, error) {
	var namespace struct {
		Metadata struct {
			UID string `json:"uid"`
		} `json:"metadata"`
	}
	err := w.workloads[0].Get(ctx, "/api/v1/namespaces/kube-system", &namespace)
	return namespace.Metadata.UID, err
}
