// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"time"

	"github.com/masthead-dev/masthead/test/bench/apiserver"
	"github.com/masthead-dev/masthead/test/bench/process"
	"github.com/masthead-dev/masthead/test/harness"
)

// peerSubject is kubernetes-sigs/application, which runs against the API server of the workload cluster. Its user has
// all rights.
type peerSubject struct {
	world   *world
	process *process.Process

	// config is the file with its kubeconfig.
	config string
}

const peerUser = "application-controller"

func (p *peerSubject) user() string { return peerUser }

const theirCRD = "applications.app.k8s.io"

// prepare installs its kind. The definition that it ships is of a version of CustomResourceDefinition that is no longer
// served.
func (p *peerSubject) prepare(ctx context.Context) error {
	crd, err := manifests.ReadFile("manifests/peer-crd.yaml")
	if err != nil {
		return err
	}
	if err := p.world.workload.Apply(ctx, apiserver.CRDPath+theirCRD, string(crd)); err != nil {
		return err
	}
	if err := p.world.workload.WaitServed(ctx, p.kind().collection("")+"?limit=1"); err != nil {
		return err
	}
	kubeconfig, err := p.world.fleet.UserKubeconfig(p.world.workload.Cluster, peerUser, "system:masters")
	if err != nil {
		return err
	}
	path := filepath.Join(p.world.fleet.Dir(), peerUser+".kubeconfig")
	if err := os.WriteFile(path, kubeconfig, 0o600); err != nil {
		return err
	}
	p.config = path
	return nil
}

func (p *peerSubject) start(ctx context.Context, period time.Duration) (running, error) {
	address, err := freeAddress(ctx)
	if err != nil {
		return running{}, err
	}
	p.process, err = process.Start(filepath.Join(p.world.fleet.Dir(), peerUser+".log"), p.world.settings.peer,
		"--kubeconfig", p.config, "--metrics-addr", address, "--sync-period", fmt.Sprint(int(period.Seconds())))
	if err != nil {
		return running{}, err
	}
	return running{pid: p.process.PID(), exited: p.process.Exited(), metrics: func(ctx context.Context) (harness.Metrics, error) {
		return harness.ReadMetrics(ctx, "http://"+address+"/metrics")
	}}, nil
}

func (p *peerSubject) stop() error {
	if p.process == nil {
		return nil
	}
	err := p.process.Kill()
	p.process = nil
	return err
}

func (p *peerSubject) kind() applicationKind {
	return applicationKind{
		group: theirGroup, version: theirVersion, manifest: theirApplication,
		watch: func(ctx context.Context, each func(state), failed chan<- error) error {
			path := collection(theirGroup, theirVersion, applications, "")
			return apiserver.Watch(ctx, p.world.workload, path, func(o theirObject) { each(o.state()) }, failed)
		},
		verdict: func(ctx context.Context, namespace, name string) (string, error) {
			var o theirObject
			err := p.world.workload.Get(ctx, p.kind().collection(namespace)+"/"+name, &o)
			return o.verdict(), err
		},
	}
}

// theirObject is the part that is read of an Application of app.k8s.io.
type theirObject struct {
	apiserver.Meta

	Status struct {
		ObservedGeneration int64  `json:"observedGeneration"`
		ComponentsReady    string `json:"componentsReady"`
		Conditions         []struct {
			Type, Status, Reason, Message string
		} `json:"conditions"`
		Components []struct {
			Kind, Name, Status string
		} `json:"components"`
	} `json:"status"`
}

func (o theirObject) state() state {
	s := state{namespace: o.Metadata.Namespace, name: o.Metadata.Name, complete: len(o.Status.Components) == len(components())}
	for _, c := range o.Status.Components {
		if c.Kind == "Deployment" {
			s.ready = c.Status == "Ready"
		}
	}
	return s
}

func (o theirObject) verdict() string {
	if o.Status.ObservedGeneration == 0 {
		return ""
	}
	text := o.Status.ComponentsReady + " ready"
	for _, c := range o.Status.Conditions {
		if c.Type == "Ready" {
			text = fmt.Sprintf("Ready is %s (%s), %s", c.Status, c.Message, text)
		}
	}
	return text
}

func freeAddress(ctx context.Context) (string, error) {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("cannot find a free port: %w", err)
	}
	defer func() { _ = l.Close() }()
	return l.Addr().String(), nil
}
