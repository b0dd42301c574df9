// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

// TestWorkloadClustersMakeNoSeries: an API server answers with any status codes.
func TestWorkloadClustersMakeNoSeries(t *testing.T) {
	before := requestMetric.host.Load()
	t.Cleanup(func() { requestMetric.host.Store(before) })
	for name, isHub := range map[string]bool{"Workload": false, "Hub": true} {
		code := http.StatusOK
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) }))
		t.Cleanup(server.Close)
		cfg := &rest.Config{Host: server.URL, QPS: -1}
		if isHub {
			if err := requestMetric.setHub(cfg); err != nil {
				t.Fatal(err)
			}
		}
		cfg.GroupVersion, cfg.NegotiatedSerializer = &schema.GroupVersion{Version: "v1"}, scheme.Codecs.WithoutConversion()
		c, err := rest.RESTClientFor(cfg)
		if err != nil {
			t.Fatal(err)
		}
		for code = 200; code < 300; code++ { // Ten of them are status codes, the others one.
			_ = c.Get().AbsPath("/version").Do(t.Context()).Error()
		}
		families, err := metrics.Registry.Gather()
		if err != nil {
			t.Fatal(err)
		}
		series := 0
		for _, family := range families {
			for _, m := range family.GetMetric() {
				if strings.Contains(m.String(), strings.TrimPrefix(server.URL, "http://")) {
					series++
				}
			}
		}
		if want := map[bool]int{false: 0, true: 11}[isHub]; series != want {
			t.Errorf("%s: want %d series, got %d", name, want, series)
		}
	}
}
