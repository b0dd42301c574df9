// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package credentials

import (
	"k8s.io/client-go/rest"
)

// Credentials are the validated content of a kubeconfig for one cluster. They are immutable, and print as the address
// of the API server only.
type Credentials struct {
	config *rest.Config
	token  string
	print  fingerprint

	// endpoint is nil if it must not be published.
	endpoint *Endpoint
}

// RESTConfig returns a copy of the configuration, without the token.
func (c *Credentials) RESTConfig() *rest.Config { return rest.CopyConfig(c.config) }

// Token returns the bearer token, or nothing if the credentials are a client certificate only.
func (c *Credentials) Token() string { return c.token }

// Host returns the address of the API server as a URL.
func (c *Credentials) Host() string { return c.config.Host }

// String keeps secrets out of logs.
func (c *Credentials) String() string { return "credentials for " + c.config.Host }

// GoString keeps secrets out of logs, for %#v.
func (c *Credentials) GoString() string { return c.String() }

// MarshalLog keeps secrets out of structured logs.
func (c *Credentials) MarshalLog() any { return c.String() }
