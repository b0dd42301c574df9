// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/masthead-dev/masthead/test/bench/apiserver"
)

// changePatience is how long a change may take until the status shows it. The slowest that is known takes four minutes.
const changePatience = 10 * time.Minute

// change changes Deployments, each at a random moment, and measures how long it takes until the Application shows it.
func (w *world) change(ctx context.Context, program running, t *tracker, apps set, r *result) error {
	if w.settings.changes == 0 {
		return nil
	}
	var group errgroup.Group
	latencies := make(chan time.Duration, r.apps*r.rounds(w.settings.changes))
	// Which ones is random, too; the same in each run of the benchmark.
	random := rand.New(rand.NewPCG(1, uint64(apps.run)))
	for _, i := range random.Perm(apps.apps)[:min(apps.apps, w.settings.changes)] {
		delays := make([]time.Duration, r.rounds(w.settings.changes))
		for round := range delays {
			delays[round] = time.Duration(random.Int64N(int64(r.window())))
		}
		group.Go(func() error { return w.toggle(ctx, program, t, apps, i, delays, latencies) })
	}
	err := group.Wait()
	close(latencies)
	for d := range latencies {
		r.latencies = append(r.latencies, d)
	}
	return err
}

// toggle makes the Deployment of an Application ready, and not ready again, and so on, each time after a delay.
func (w *world) toggle(
	ctx context.Context, program running, t *tracker, apps set, i int, delays []time.Duration, latencies chan<- time.Duration,
) error {
	deployment := components()[0]
	path := deployment.collection(apps.namespace(i)) + "/" + apps.name(i) + "-" + deployment.suffix + "/status"
	for round, delay := range delays {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(delay):
		}
		ready := round%2 == 0
		seen := t.expect(appKey{apps.namespace(i), apps.name(i)}, ready)
		begun := time.Now()
		if err := w.workload.Do(ctx, http.MethodPatch, path, apiserver.TypeMerge, deploymentStatus(ready)); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-program.exited:
			return errors.New("the program has ended")
		case <-time.After(changePatience):
			return errors.Join(errSlow, fmt.Errorf("a change did not show within %s", changePatience))
		case at := <-seen:
			latencies <- at.Sub(begun)
		}
	}
	return nil
}
