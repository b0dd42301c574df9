// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package credentials

import (
	"errors"

	"k8s.io/client-go/rest"
)

// Options are what an operator may allow kubeconfigs to hold beyond what is safe by default.
type Options struct {
	// AllowInsecureTLS allows insecure-skip-tls-verify.
	AllowInsecureTLS bool
	// AllowProxy allows proxy-url.
	AllowProxy bool
	// AllowLoopback allows API servers on the manager's own loopback interface, as on a developer's machine. In a cluster,
	// loopback is the manager's own Pod: nothing that a kubeconfig should reach.
	AllowLoopback bool
}

// A Change says how two sets of credentials differ.
type Change int

const (
	// Unchanged: both mean the same.
	Unchanged Change = iota
	// TokenChanged: only the bearer token differs, so that it can be swapped in a live connection.
	TokenChanged
	// Replaced: the endpoint, its authority or the kind of credentials differs, so that a new connection is needed.
	Replaced
)

// Credentials are what a kubeconfig says about one cluster, after everything that is refused was refused.
type Credentials struct {
	config *rest.Config
	token  string
}

// RESTConfig returns a copy of the configuration, without the token.
func (c *Credentials) RESTConfig() *rest.Config { return rest.CopyConfig(c.config) }

// Token returns the bearer token, or nothing if the credentials are a client certificate.
func (c *Credentials) Token() string { return c.token }

// An InvalidError says why a kubeconfig is refused. It never holds secret material.
type InvalidError struct {
	// Reason is one of the Reason constants.
	Reason string
	// Message says what is wrong, in words for the person who wrote the kubeconfig.
	Message string
}

func (e *InvalidError) Error() string { return e.Message }

// Parse reads a kubeconfig.
func Parse(kubeconfig []byte, o Options) (*Credentials, error) {
	return nil, errors.New("not a kubeconfig")
}

// Compare says how two sets of credentials differ.
func Compare(old, new *Credentials) Change { return Replaced }
