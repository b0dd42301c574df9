// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
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

// api is an API server as the benchmark uses it: with as little of the shared processor as possible, and without limits.
type api struct {
	cluster string
	host    string
	client  *http.Client
}

func newAPI(fleet *localfleet.Fleet, cluster string) (*api, error) {
	config, err := fleet.Config(cluster)
	if err != nil {
		return nil, err
	}
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("cannot make a client for cluster %q: %w", cluster, err)
	}
	return &api{cluster: cluster, host: strings.TrimSuffix(config.Host, "/"), client: client}, nil
}

// Content types of requests.
const (
	typeJSON  = "application/json"
	typeMerge = "application/merge-patch+json"
	typeApply = "application/apply-patch+yaml"
)

// errNotFound says that there is no such object, or no such kind yet.
var errNotFound = errors.New("not found")

func (a *api) send(ctx context.Context, method, path, contentType string, body []byte) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, method, a.host+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	if contentType != "" {
		req.Header.Set("Content-Type", contentType)
	}
	req.Header.Set("Accept", typeJSON)
	resp, err := a.client.Do(req)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode < http.StatusBadRequest {
		return resp, nil
	}
	defer func() { _ = resp.Body.Close() }()
	text, _ := io.ReadAll(io.LimitReader(resp.Body, 1<<10))
	err = fmt.Errorf("%s %s in cluster %q: %s: %s", method, path, a.cluster, resp.Status, text)
	if resp.StatusCode == http.StatusNotFound {
		err = errors.Join(errNotFound, err)
	}
	return nil, err
}

// do sends a request and reads the answer to its end, so that the connection can be used again.
func (a *api) do(ctx context.Context, method, path, contentType string, body []byte) error {
	resp, err := a.send(ctx, method, path, contentType, body)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	_, err = io.Copy(io.Discard, resp.Body)
	return err
}

// apply applies YAML, and tries again while the kind is not served yet.
func (a *api) apply(ctx context.Context, path, yaml string) error {
	var last error
	err := wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		last = a.do(ctx, http.MethodPatch, path+"?fieldManager=bench&force=true", typeApply, []byte(yaml))
		return last == nil, nil
	})
	if err != nil {
		return errors.Join(err, last)
	}
	return nil
}

// remove deletes an object, if it is there.
func (a *api) remove(ctx context.Context, path string) error {
	err := a.do(ctx, http.MethodDelete, path, "", nil)
	if errors.Is(err, errNotFound) {
		return nil
	}
	return err
}
