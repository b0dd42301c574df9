// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"

	"k8s.io/client-go/tools/clientcmd"

	"github.com/masthead-dev/masthead/test/bench/apiserver"
	"github.com/masthead-dev/masthead/test/bench/claims"
	"github.com/masthead-dev/masthead/test/bench/process"
	"github.com/masthead-dev/masthead/test/harness"
	"github.com/masthead-dev/masthead/test/localfleet"
)

// konnectorSubject is kube-bind's konnector, one in each workload cluster (its consumer), with the hub as the provider.
// The benchmark itself does what kube-bind's backend would do in the hub: the export, the binding, and the pairing of
// namespaces. The konnector's user has all rights.
type konnectorSubject struct {
	world     *world
	program   string
	processes []*process.Process

	// prepared are the clusters in which the kinds of kube-bind are installed.
	prepared map[string]bool
}

func (s *konnectorSubject) user() string { return "konnector" }

// metrics returns nil: the konnector publishes none.
func (s *konnectorSubject) metrics() func(context.Context) (harness.Metrics, error) { return nil }

func (s *konnectorSubject) pids() []int {
	pids := make([]int, 0, len(s.processes))
	for _, p := range s.processes {
		pids = append(pids, p.PID())
	}
	return pids
}

const (
	kubeBind      = "kube-bind.io/v1alpha1"
	kubeBindPath  = "/apis/" + kubeBind
	bindingFolder = "kube-bind"
)

func (s *konnectorSubject) start(ctx context.Context, k claims.Kind) error {
	w := s.world
	if err := w.hub.Apply(ctx, apiserver.CRDPath+k.CRDName(), k.CRD()); err != nil {
		return err
	}
	if err := s.prepare(ctx, w.hub); err != nil {
		return err
	}
	for _, a := range w.workloads {
		if err := s.bind(ctx, a, k); err != nil {
			return fmt.Errorf("cannot bind cluster %q: %w", a.Cluster, err)
		}
	}
	return w.waitServed(ctx, k)
}

// prepare installs the kinds of kube-bind.
func (s *konnectorSubject) prepare(ctx context.Context, a *apiserver.Client) error {
	if s.prepared[a.Cluster] {
		return nil
	}
	config, err := s.world.fleet.Config(a.Cluster)
	if err != nil {
		return err
	}
	if err := localfleet.Apply(ctx, config, s.world.settings.crds); err != nil {
		return err
	}
	s.prepared[a.Cluster] = true
	return nil
}

// bind makes the konnector of a workload cluster carry a kind.
func (s *konnectorSubject) bind(ctx context.Context, a *apiserver.Client, k claims.Kind) error {
	if err := s.prepare(ctx, a); err != nil {
		return err
	}
	hub, provider := s.world.hub, "cn-"+a.Cluster
	kubeconfig, err := s.kubeconfig(localfleet.HubName, provider)
	if err != nil {
		return err
	}
	namespaceOf := func(name string) string { return apiserver.Manifest("v1", "Namespace", "", name, nil) }
	secret := func(in string) string {
		return apiserver.Manifest("v1", "Secret", in, "kubeconfig", map[string]any{
			"data": map[string]any{"kubeconfig": base64.StdEncoding.EncodeToString(kubeconfig)},
		})
	}
	ref := map[string]any{"name": "kubeconfig", "key": "kubeconfig"}
	export := k.Definition()
	export["informerScope"] = "Namespaced"
	in := func(ns string) string { return kubeBindPath + "/namespaces/" + ns }
	for _, o := range []struct {
		to         *apiserver.Client
		path, yaml string
	}{
		{hub, "/api/v1/namespaces/" + provider, namespaceOf(provider)},
		{hub, "/api/v1/namespaces/" + provider + "-" + claims.Namespace, namespaceOf(provider + "-" + claims.Namespace)},
		{hub, "/api/v1/namespaces/" + provider + "/secrets/kubeconfig", secret(provider)},
		{hub, in(provider) + "/clusterbindings/cluster", apiserver.Manifest(kubeBind, "ClusterBinding", provider, "cluster", map[string]any{
			"spec": map[string]any{"kubeconfigSecretRef": ref, "providerPrettyName": "bench"},
		})},
		{hub, in(provider) + "/apiservicenamespaces/" + claims.Namespace, apiserver.Manifest(kubeBind, "APIServiceNamespace", provider, claims.Namespace, map[string]any{"spec": map[string]any{}})},
		{hub, in(provider) + "/apiserviceexports/" + k.CRDName(), apiserver.Manifest(kubeBind, "APIServiceExport", provider, k.CRDName(), map[string]any{"spec": export})},
		{a, "/api/v1/namespaces/" + bindingFolder, namespaceOf(bindingFolder)},
		{a, "/api/v1/namespaces/" + bindingFolder + "/secrets/kubeconfig", secret(bindingFolder)},
		{a, kubeBindPath + "/apiservicebindings/" + k.CRDName(), apiserver.Manifest(kubeBind, "APIServiceBinding", "", k.CRDName(), map[string]any{
			"spec": map[string]any{"kubeconfigSecretRef": map[string]any{"name": "kubeconfig", "key": "kubeconfig", "namespace": bindingFolder}},
		})},
	} {
		if err := o.to.Apply(ctx, o.path, o.yaml); err != nil {
			return err
		}
	}
	paired := fmt.Appendf(nil, `{"status":{"namespace":"%s-%s"}}`, provider, claims.Namespace)
	if err := hub.Do(ctx, http.MethodPatch, in(provider)+"/apiservicenamespaces/"+claims.Namespace+"/status", apiserver.TypeMerge, paired); err != nil {
		return err
	}
	return s.run(a)
}

// run starts the konnector of a workload cluster.
func (s *konnectorSubject) run(a *apiserver.Client) error {
	kubeconfig, err := s.kubeconfig(a.Cluster, "")
	if err != nil {
		return err
	}
	path := filepath.Join(s.world.fleet.Dir(), "konnector-"+a.Cluster+".kubeconfig")
	if err := os.WriteFile(path, kubeconfig, 0o600); err != nil {
		return err
	}
	p, err := process.Start(filepath.Join(s.world.fleet.Dir(), "konnector-"+a.Cluster+".log"), s.program, "--kubeconfig", path, "-v", "0")
	if err != nil {
		return err
	}
	s.processes = append(s.processes, p)
	return nil
}

// kubeconfig returns a kubeconfig of the konnector for a cluster. Its context has a namespace, from which the konnector
// knows its consumer.
func (s *konnectorSubject) kubeconfig(cluster, in string) ([]byte, error) {
	data, err := s.world.fleet.UserKubeconfig(cluster, s.user(), "system:masters")
	if err != nil {
		return nil, err
	}
	config, err := clientcmd.Load(data)
	if err != nil {
		return nil, fmt.Errorf("cannot read the konnector's kubeconfig for cluster %q: %w", cluster, err)
	}
	config.Contexts[config.CurrentContext].Namespace = in
	return clientcmd.Write(*config)
}

// stop ends the konnectors. So that their next run does not follow the claims of this one, the definitions are disowned
// before the binding is deleted; otherwise its deletion would delete them and all claims. The lease is deleted, because
// the next run would wait for it.
func (s *konnectorSubject) stop(ctx context.Context, k claims.Kind) error {
	var errs []error
	for _, p := range s.processes {
		errs = append(errs, p.Kill())
	}
	s.processes = nil
	errs = append(errs, s.world.everywhere(ctx, func(ctx context.Context, a *apiserver.Client) error {
		err := a.Do(ctx, http.MethodPatch, apiserver.CRDPath+k.CRDName(), apiserver.TypeMerge, []byte(`{"metadata":{"ownerReferences":null}}`))
		if err != nil && !errors.Is(err, apiserver.ErrNotFound) {
			return err
		}
		return errors.Join(
			a.Remove(ctx, kubeBindPath+"/apiservicebindings/"+k.CRDName()),
			a.Remove(ctx, "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/kube-bind"),
			s.world.hub.Remove(ctx, kubeBindPath+"/namespaces/cn-"+a.Cluster+"/apiserviceexports/"+k.CRDName()))
	}))
	return errors.Join(errs...)
}
