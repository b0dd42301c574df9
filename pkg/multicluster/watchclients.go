// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package multicluster

import (
	"net/http"
	"time"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cluster"

	"github.com/masthead-dev/masthead/pkg/dynamicclient"
)

// WatchTimeout is the time-out of the HTTP client of watches. An API server ends a watch after five to ten minutes, so that
// this never cuts one that lives, and still ends a list that hangs.
const WatchTimeout = 11 * time.Minute

// WatchClients returns the clients for watches of a cluster, as kindwatch needs them. They go through the connection of the
// cluster, without the time-out that is meant for single requests: whoever makes such a request with them sets a deadline.
func WatchClients(cl cluster.Cluster) (dynamic.Interface, metadata.Interface, error) {
	config := rest.CopyConfig(cl.GetConfig())
	config.Timeout = WatchTimeout
	httpClient := &http.Client{}
	if h := cl.GetHTTPClient(); h != nil {
		*httpClient = *h
	}
	httpClient.Timeout, httpClient.Transport = 0, WithTimeout(httpClient.Transport, WatchTimeout)

	meta, err := metadata.NewForConfigAndClient(config, httpClient)
	if err != nil {
		return nil, nil, err
	}
	if c, ok := cl.(interface{ Dynamic() dynamic.Interface }); ok {
		return c.Dynamic(), meta, nil
	}
	dyn, err := dynamicclient.New(config, httpClient)
	if err != nil {
		return nil, nil, err
	}
	return dyn, meta, nil
}
