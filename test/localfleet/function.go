// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package localfleet

import (
	"context"
	"crypto/tls"
	"fmt"
	"os"
	"path/filepath"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
)

// FunctionName is the name under which Compositions refer to the fleet's composition function.
const FunctionName = Function

const portFunction = "localfleet-function"

var functionRevisionKind = schema.GroupVersionKind{Group: "pkg.crossplane.io", Version: "v1", Kind: "FunctionRevision"}

// FunctionCertificates creates the certificates with which Crossplane and the function trust each other on one machine
// or in one Pod. They are issued by their own authority and have the layout that both programs expect: below folder,
// each of the two programs has a folder with tls.crt, tls.key and ca.crt.
func FunctionCertificates(folder string) error {
	return writeFunctionCertificates(folder, clock.RealClock{})
}

func writeFunctionCertificates(folder string, now clock.PassiveClock) error {
	ca, err := newAuthority("localfleet function", now)
	if err != nil {
		return err
	}
	for _, program := range []string{Crossplane, Function} {
		folder := filepath.Join(folder, program)
		if err := os.MkdirAll(folder, 0o700); err != nil {
			return fmt.Errorf("cannot create a folder for certificates: %w", err)
		}
		pair, err := ca.server(program)
		if err != nil {
			return err
		}
		if err := pair.write(folder, "tls"); err != nil {
			return err
		}
		if err := writeFile(filepath.Join(folder, "ca.crt"), ca.certificate); err != nil {
			return err
		}
	}
	return nil
}

// function runs the composition function.
func (c *cluster) function() server {
	certificates := filepath.Join(c.fleet.layout.pki(c.name), Function)
	return server{
		program: Function,
		ports:   []string{portFunction},
		arguments: func(ports map[string]int) []string {
			return []string{"--address=" + loopback(ports[portFunction]), "--tls-certs-dir=" + certificates}
		},
		ready: func(ctx context.Context, ports map[string]int) error {
			config, err := tlsConfig(filepath.Join(certificates, "ca.crt"), certificates, "tls")
			if err != nil {
				return err
			}
			config.NextProtos = []string{"h2"}
			connection, err := (&tls.Dialer{Config: config}).DialContext(ctx, "tcp", loopback(ports[portFunction]))
			if err != nil {
				return fmt.Errorf("cannot connect to the function: %w", err)
			}
			return connection.Close()
		},
	}
}

// installFunction does what Crossplane's package manager does for a function whose package it can pull: it creates an
// active revision with the endpoint of the function. Crossplane calls the endpoint in the revision's status.
func (c *cluster) installFunction(ctx context.Context, config *rest.Config) error {
	return InstallFunction(ctx, config, loopback(c.ports()[portFunction]))
}

// InstallFunction registers the endpoint of the composition function with the Crossplane of a hub.
func InstallFunction(ctx context.Context, config *rest.Config, endpoint string) error {
	hub, err := newClient(config)
	if err != nil {
		return err
	}
	revision := &unstructured.Unstructured{Object: map[string]any{
		"metadata": map[string]any{
			"name":   FunctionName,
			"labels": map[string]any{"pkg.crossplane.io/package": FunctionName},
		},
		"spec": map[string]any{
			"desiredState": "Active", "revision": int64(1),
			"image": "registry.invalid/" + FunctionName + ":v0", "packagePullPolicy": "Never",
		},
	}}
	revision.SetGroupVersionKind(functionRevisionKind)
	return applyWithStatus(ctx, hub, revision, map[string]any{
		"endpoint":     endpoint,
		"capabilities": []any{"composition"},
	})
}
