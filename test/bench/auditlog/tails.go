// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package auditlog

import (
	"context"
	"fmt"
	"time"
)

// Tails are the audit logs of a hub and of workload clusters, read for one user.
type Tails struct {
	// AtHub and AtWorkloads are the requests until the last Read.
	AtHub, AtWorkloads Counts

	user      string
	hub       *Tail
	workloads []*Tail
}

// NewTails begins to count the requests of a user.
func NewTails(user, hub string, workloads ...string) (*Tails, error) {
	t := &Tails{user: user, AtHub: Counts{}, AtWorkloads: Counts{}}
	var err error
	if t.hub, err = NewTail(hub); err != nil {
		return nil, err
	}
	for _, path := range workloads {
		log, err := NewTail(path)
		if err != nil {
			return nil, err
		}
		t.workloads = append(t.workloads, log)
	}
	return t, nil
}

// Read counts what was logged since the last time, and returns how many of these requests were work.
func (t *Tails) Read() (work int, err error) {
	c, err := t.hub.Count(t.user)
	if err != nil {
		return 0, err
	}
	t.AtHub.Add(c)
	work = c.Count(Work)
	for _, log := range t.workloads {
		if c, err = log.Count(t.user); err != nil {
			return 0, err
		}
		t.AtWorkloads.Add(c)
		work += c.Count(Work)
	}
	return work, nil
}

// quiet is how long a program must send no requests of the class Work to count as idle.
const quiet = 4 * time.Second

// Settle waits, for up to a minute, until the user has sent no requests of the class Work for a while. Watches, leader
// election and probes do not count.
func (t *Tails) Settle(ctx context.Context) error {
	deadline, since := time.Now().Add(time.Minute), time.Now()
	ticker := time.NewTicker(500 * time.Millisecond)
	defer ticker.Stop()
	for time.Since(since) < quiet {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-ticker.C:
		}
		work, err := t.Read()
		if err != nil {
			return err
		}
		if work > 0 {
			since = time.Now()
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("%s does not come to rest: %s; %s", t.user, t.AtWorkloads, t.AtHub)
		}
	}
	return nil
}
