// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/prometheus/client_golang/api"
	v1 "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/common/model"
)

// points is how many points a line has.
const points = 400

// server is a Prometheus that scrapes nothing.
type server struct {
	v1.API

	folder string
	cmd    *exec.Cmd
	exited chan struct{}
}

// line is the part of a series that is drawn.
type line struct {
	name    string
	samples []model.SamplePair
	step    time.Duration
}

// start starts a Prometheus with a copy of the data, and waits until it answers.
func start(ctx context.Context, o options) (_ *server, err error) {
	s := &server{exited: make(chan struct{})}
	if s.folder, err = os.MkdirTemp("", "draw"); err != nil {
		return nil, err
	}
	data := filepath.Join(s.folder, "data")
	if err := os.CopyFS(data, os.DirFS(o.data)); err != nil {
		return nil, errors.Join(fmt.Errorf("cannot copy the data: %w", err), os.RemoveAll(s.folder))
	}
	config := filepath.Join(s.folder, "prometheus.yaml")
	if err := os.WriteFile(config, []byte("{}"), 0o600); err != nil {
		return nil, errors.Join(err, os.RemoveAll(s.folder))
	}
	address, err := freeAddress(ctx)
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(s.folder))
	}
	s.cmd = exec.CommandContext(ctx, o.prometheus, "--config.file="+config, "--storage.tsdb.path="+data, "--web.listen-address="+address, "--log.level=warn")
	s.cmd.Stderr = os.Stderr
	if err := s.cmd.Start(); err != nil {
		return nil, errors.Join(fmt.Errorf("cannot start Prometheus: %w", err), os.RemoveAll(s.folder))
	}
	go func() {
		_ = s.cmd.Wait()
		close(s.exited)
	}()
	client, err := api.NewClient(api.Config{Address: "http://" + address})
	if err != nil {
		return nil, errors.Join(err, s.stop())
	}
	s.API = v1.NewAPI(client)
	if err := s.waitReady(ctx, "http://"+address+"/-/ready"); err != nil {
		return nil, errors.Join(err, s.stop())
	}
	return s, nil
}

func freeAddress(ctx context.Context) (string, error) {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return l.Addr().String(), l.Close()
}

func (s *server) waitReady(ctx context.Context, url string) error {
	for tick := time.NewTicker(100 * time.Millisecond); ; {
		select {
		case <-s.exited:
			return errors.New("the Prometheus has exited")
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			return err
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			continue // It does not listen yet.
		}
		_ = resp.Body.Close()
		if resp.StatusCode == http.StatusOK {
			return nil
		}
	}
}

func (s *server) stop() error {
	_ = s.cmd.Process.Kill()
	<-s.exited
	return os.RemoveAll(s.folder)
}

// whole is the range from the first to the last sample.
func (s *server) whole(ctx context.Context) (v1.Range, error) {
	status, err := s.TSDB(ctx)
	if err != nil {
		return v1.Range{}, err
	}
	over := v1.Range{Start: time.UnixMilli(int64(status.HeadStats.MinTime)), End: time.UnixMilli(int64(status.HeadStats.MaxTime))}
	over.Step = max((over.End.Sub(over.Start) / points).Truncate(time.Second), scrapeInterval)
	if !over.End.After(over.Start) {
		return over, errors.New("there is no data")
	}
	return over, nil
}

// lines are the answers to all queries of a panel.
func (s *server) lines(ctx context.Context, p panel, over v1.Range) ([]line, error) {
	var all []line
	for _, t := range p.Targets {
		query := filled(t.Expr, over.Step)
		value, _, err := s.QueryRange(ctx, query, over)
		if err != nil {
			return nil, fmt.Errorf("cannot evaluate %q: %w", query, err)
		}
		matrix, _ := value.(model.Matrix)
		for _, series := range matrix {
			all = append(all, line{name: legend(t.LegendFormat, series.Metric), samples: series.Values, step: over.Step})
		}
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("there is no data for %q", p.Title)
	}
	return all, nil
}
