// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
)

// object is what the benchmark looks at.
type object struct {
	Metadata struct {
		Name            string `json:"name"`
		Namespace       string `json:"namespace"`
		ResourceVersion string `json:"resourceVersion"`
	} `json:"metadata"`
	Status struct {
		Address string `json:"address"`
	} `json:"status"`
}

// watch calls a function for every object of a kind that is created or changed from now on, until ctx ends or the watch
// cannot go on, the reason of which is sent to failed. It returns once the watch has begun.
func (a *api) watch(ctx context.Context, k kind, each func(object), failed chan<- error) error {
	version, err := a.version(ctx, k)
	if err != nil {
		return err
	}
	stream, err := a.stream(ctx, k, version)
	if err != nil {
		return err
	}
	go func() {
		for {
			version, err = follow(stream, version, each)
			if errors.Is(err, io.EOF) {
				// An API server ends the watch of somebody who cannot keep up, for example because the machine is busy.
				stream, err = a.stream(ctx, k, version)
			}
			if err != nil {
				failed <- fmt.Errorf("the watch of %s in cluster %q ended: %w", k.plural, a.cluster, err)
				return
			}
		}
	}()
	return nil
}

// version is the present resource version of a kind.
func (a *api) version(ctx context.Context, k kind) (string, error) {
	body, err := a.stream(ctx, k, "")
	if err != nil {
		return "", err
	}
	defer func() { _ = body.Close() }()
	var list object
	if err := json.NewDecoder(body).Decode(&list); err != nil {
		return "", fmt.Errorf("cannot list %s in cluster %q: %w", k.plural, a.cluster, err)
	}
	return list.Metadata.ResourceVersion, nil
}

// stream begins a watch after a version, or, without one, a list of one object.
func (a *api) stream(ctx context.Context, k kind, version string) (io.ReadCloser, error) {
	query := "?limit=1"
	if version != "" {
		query = "?watch=true&resourceVersion=" + version
	}
	resp, err := a.send(ctx, http.MethodGet, k.collection("")+query, "", nil)
	if err != nil {
		return nil, err
	}
	return resp.Body, nil
}

// follow reads a watch to its end. It returns the version up to which it has come.
func follow(stream io.ReadCloser, version string, each func(object)) (string, error) {
	defer func() { _ = stream.Close() }()
	decoder := json.NewDecoder(stream)
	for {
		var event struct {
			Type   string `json:"type"`
			Object object `json:"object"`
		}
		if err := decoder.Decode(&event); err != nil {
			return version, err
		}
		if event.Type == "ERROR" {
			return version, errors.New("the API server has an error")
		}
		version = event.Object.Metadata.ResourceVersion
		each(event.Object)
	}
}
