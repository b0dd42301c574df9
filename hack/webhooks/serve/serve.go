// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

// Package serve runs the admission webhooks of a provider of Cluster API for the API server of a test, or reconciles
// single objects as its controllers do.
package serve

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
)

// Webhook is the admission code of one kind. Providers register it as it is.
type Webhook interface {
	SetupWebhookWithManager(mgr ctrl.Manager) error
}

// Main serves webhooks, or reconciles what its standard input names, until that input ends, as it does with the test
// that started it. The flags say which, where, and for which API server.
func Main(addToScheme []func(*runtime.Scheme) error, reconcilers Reconcilers, webhooks ...Webhook) {
	reconcile := flag.Bool("reconcile", false, "reconcile the objects that the standard input names")
	host := flag.String("host", "127.0.0.1", "the address to listen on")
	port := flag.Int("port", 0, "the port to listen on")
	certificates := flag.String("cert-dir", "", "the folder with tls.crt and tls.key")
	flag.Parse() // controller-runtime adds --kubeconfig.
	ctrl.SetLogger(logr.Discard())
	o := webhook.Options{Host: *host, Port: *port, CertDir: *certificates}
	if !*reconcile {
		reconcilers = nil
	}
	if err := run(o, addToScheme, reconcilers, webhooks); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(o webhook.Options, addToScheme []func(*runtime.Scheme) error, reconcilers Reconcilers, webhooks []Webhook) error {
	scheme := runtime.NewScheme()
	for _, add := range addToScheme {
		if err := add(scheme); err != nil {
			return fmt.Errorf("cannot add to the scheme: %w", err)
		}
	}
	config, err := ctrl.GetConfig()
	if err != nil {
		return fmt.Errorf("cannot read the kubeconfig: %w", err)
	}
	if reconcilers != nil {
		return answer(config, scheme, reconcilers, os.Stdin, os.Stdout)
	}
	mgr, err := ctrl.NewManager(config, ctrl.Options{
		Scheme: scheme, Metrics: metricsserver.Options{BindAddress: "0"}, WebhookServer: webhook.NewServer(o),
	})
	if err != nil {
		return fmt.Errorf("cannot create the manager: %w", err)
	}
	for _, w := range webhooks {
		if err := w.SetupWebhookWithManager(mgr); err != nil {
			return fmt.Errorf("cannot serve %T: %w", w, err)
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		cancel()
	}()
	if err := mgr.Start(ctx); err != nil {
		return fmt.Errorf("cannot serve: %w", err)
	}
	return nil
}
