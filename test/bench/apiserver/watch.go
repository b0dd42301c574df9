// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
)

// Meta is the part of the metadata that is read of every object. A type that is watched embeds it, and adds the other
// fields that are read.
type Meta struct {
	Metadata struct {
		Name            string `json:"name"`
		Namespace       string `json:"namespace"`
		ResourceVersion string `json:"resourceVersion"`
	} `json:"metadata"`
}

// Version is the resource version.
func (m Meta) Version() string { return m.Metadata.ResourceVersion }

// Object is an object that can be watched.
type Object interface{ Version() string }

// Watch calls a function for every object at a path that is created, changed or deleted from now on, until ctx ends or
// the watch cannot continue. The reason is sent to failed. Watch returns once the watch has begun.
func Watch[T Object](ctx context.Context, c *Client, path string, each func(T), failed chan<- error) error {
	version, err := c.version(ctx, path)
	if err != nil {
		return err
	}
	stream, err := c.stream(ctx, path, version)
	if err != nil {
		return err
	}
	go func() {
		for {
			version, err = Follow(stream, version, each)
			if errors.Is(err, io.EOF) {
				// An API server ends the watch of a client that cannot keep up, for example because the machine is busy.
				stream, err = c.stream(ctx, path, version)
			}
			if err != nil {
				failed <- fmt.Errorf("the watch of %s in cluster %q ended: %w", path, c.Cluster, err)
				return
			}
		}
	}()
	return nil
}

// version is the current resource version of a collection.
func (c *Client) version(ctx context.Context, path string) (string, error) {
	var list Meta
	if err := c.Get(ctx, path+"?limit=1", &list); err != nil {
		return "", err
	}
	return list.Version(), nil
}

// stream begins a watch after a resource version.
func (c *Client) stream(ctx context.Context, path, version string) (io.ReadCloser, error) {
	resp, err := c.send(ctx, http.MethodGet, path+"?watch=true&resourceVersion="+version, "", nil)
	if err != nil {
		return nil, err
	}
	return resp.Body, nil
}

// Follow reads a watch to its end. It returns the resource version that it has reached.
func Follow[T Object](stream io.ReadCloser, version string, each func(T)) (string, error) {
	defer func() { _ = stream.Close() }()
	decoder := json.NewDecoder(stream)
	for {
		var event struct {
			Type   string `json:"type"`
			Object T      `json:"object"`
		}
		if err := decoder.Decode(&event); err != nil {
			return version, err
		}
		if event.Type == "ERROR" {
			return version, errors.New("the API server has an error")
		}
		version = event.Object.Version()
		each(event.Object)
	}
}
