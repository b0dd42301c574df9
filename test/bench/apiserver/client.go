// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"

	"github.com/masthead-dev/masthead/test/localfleet"
)

// Client is a client of an API server, with the credentials of its administrator.
type Client struct {
	// Cluster is the name of the API server's cluster in the fleet.
	Cluster string

	host   string
	client *http.Client
}

// New returns a client for a cluster of the fleet.
func New(fleet *localfleet.Fleet, cluster string) (*Client, error) {
	config, err := fleet.Config(cluster)
	if err != nil {
		return nil, err
	}
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("cannot create a client for cluster %q: %w", cluster, err)
	}
	return &Client{Cluster: cluster, host: strings.TrimSuffix(config.Host, "/"), client: client}, nil
}

// Content types of requests.
const (
	TypeJSON  = "application/json"
	TypeMerge = "application/merge-patch+json"
	TypeApply = "application/apply-patch+yaml"
)

// ErrNotFound is returned if there is no such object, or no such kind yet.
var ErrNotFound = errors.New("not found")

func (c *Client) send(ctx context.Context, method, path, contentType string, body []byte) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, method, c.host+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	if contentType != "" {
		req.Header.Set("Content-Type", contentType)
	}
	req.Header.Set("Accept", TypeJSON)
	resp, err := c.client.Do(req)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode < http.StatusBadRequest {
		return resp, nil
	}
	defer func() { _ = resp.Body.Close() }()
	text, _ := io.ReadAll(io.LimitReader(resp.Body, 1<<10))
	err = fmt.Errorf("%s %s in cluster %q: %s: %s", method, path, c.Cluster, resp.Status, text)
	if resp.StatusCode == http.StatusNotFound {
		err = errors.Join(ErrNotFound, err)
	}
	return nil, err
}

// Do sends a request and reads the answer to its end, so that the connection can be used again.
func (c *Client) Do(ctx context.Context, method, path, contentType string, body []byte) error {
	resp, err := c.send(ctx, method, path, contentType, body)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	_, err = io.Copy(io.Discard, resp.Body)
	return err
}

// Get reads the object or the list at a path.
func (c *Client) Get(ctx context.Context, path string, into any) error {
	resp, err := c.send(ctx, http.MethodGet, path, "", nil)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	if err := json.NewDecoder(resp.Body).Decode(into); err != nil {
		return fmt.Errorf("cannot parse what is at %s in cluster %q: %w", path, c.Cluster, err)
	}
	return nil
}

// Create creates an object in a collection.
func (c *Client) Create(ctx context.Context, collection string, body []byte) error {
	return c.Do(ctx, http.MethodPost, collection, TypeJSON, body)
}

// Apply applies YAML, and tries again while the kind is not served yet.
func (c *Client) Apply(ctx context.Context, path, yaml string) error {
	return c.try(ctx, func(ctx context.Context) error {
		return c.Do(ctx, http.MethodPatch, path+"?fieldManager=bench&force=true", TypeApply, []byte(yaml))
	})
}

// WaitServed waits until a path can be read.
func (c *Client) WaitServed(ctx context.Context, path string) error {
	return c.try(ctx, func(ctx context.Context) error { return c.Do(ctx, http.MethodGet, path, "", nil) })
}

// try calls do until it succeeds, for up to two minutes.
func (c *Client) try(ctx context.Context, do func(context.Context) error) error {
	var last error
	err := wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, 2*time.Minute, true, func(ctx context.Context) (bool, error) {
		last = do(ctx)
		return last == nil, nil
	})
	if err != nil {
		return errors.Join(err, last)
	}
	return nil
}

// Remove deletes an object, or all objects of a collection, if they exist.
func (c *Client) Remove(ctx context.Context, path string) error {
	err := c.Do(ctx, http.MethodDelete, path, "", nil)
	if errors.Is(err, ErrNotFound) {
		return nil
	}
	return err
}
