// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package dynamicclient

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"testing/iotest"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/flowcontrol"
)

var widgets = schema.GroupVersionResource{Group: "example.org", Version: "v1", Resource: "widgets"}

// watched is a server that sends events to watchers of widgets, and then nothing.
func watched(t *testing.T, events ...string) *rest.Config {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/apis/example.org/v1/widgets" || r.URL.Query().Get("watch") != "true" {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		for _, e := range events {
			_, _ = io.WriteString(w, e+"\n")
		}
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	}))
	t.Cleanup(server.Close)
	return &rest.Config{Host: server.URL}
}

// TestStreamsAreWatches compares the events of streams with those of client-go's watches.
func TestStreamsAreWatches(t *testing.T) {
	object := func(kind, name string) string {
		return fmt.Sprintf(`{"apiVersion":%s,"metadata":{"name":%q,"namespace":"ns","labels":{"a":"b"},"resourceVersion":"7"}}`, kind, name)
	}
	for name, tc := range map[string]struct {
		kind    string
		streams func(*rest.Config) (Streamer, error)
		watches func(context.Context, *rest.Config, metav1.ListOptions) (watch.Interface, error)
	}{
		"Objects": {
			kind:    `"example.org/v1","kind":"Widget"`,
			streams: func(c *rest.Config) (Streamer, error) { return New(c, http.DefaultClient) },
			watches: func(ctx context.Context, c *rest.Config, o metav1.ListOptions) (watch.Interface, error) {
				return dynamic.NewForConfigOrDie(c).Resource(widgets).Watch(ctx, o)
			},
		},
		"Metadata": {
			kind:    `"meta.k8s.io/v1","kind":"PartialObjectMetadata"`,
			streams: func(c *rest.Config) (Streamer, error) { return NewMetadata(c, http.DefaultClient) },
			watches: func(ctx context.Context, c *rest.Config, o metav1.ListOptions) (watch.Interface, error) {
				return metadata.NewForConfigOrDie(c).Resource(widgets).Watch(ctx, o)
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			config := watched(t,
				`{"type":"ADDED","object":`+object(tc.kind, "a")+`}`,
				`{"type":"BOOKMARK","object":`+object(tc.kind, "")+`}`,
				`{"type":"ERROR","object":{"apiVersion":"v1","kind":"Status","status":"Failure","code":410,"reason":"Expired"}}`,
			)
			o := metav1.ListOptions{ResourceVersion: "5", AllowWatchBookmarks: true}
			w, err := tc.watches(t.Context(), config, o)
			if err != nil {
				t.Fatal(err)
			}
			defer w.Stop()
			client, err := tc.streams(config)
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			events, err := client.Stream(ctx, widgets, "", o)
			if err != nil {
				t.Fatal(err)
			}
			defer events.Close()
			for range 3 {
				want := <-w.ResultChan()
				kind, obj, err := events.Decode()
				if err != nil || kind != want.Type || !equality.Semantic.DeepEqual(obj, want.Object) {
					t.Errorf("client-go brings %s %+v, and we bring %s %+v, %v", want.Type, want.Object, kind, obj, err)
				}
			}
			cancel()
			if _, _, err := events.Decode(); !errors.Is(err, context.Canceled) {
				t.Errorf("want the watch to end with its context, got %v", err)
			}
			if _, err := client.Stream(t.Context(), widgets, "ns", o); !apierrors.IsNotFound(err) {
				t.Errorf("want the namespace to be in the address, which the server does not know, got %v", err)
			}
		})
	}
}

// TestStreamsAreNeitherThrottledNorRetried: the caller backs off.
func TestStreamsAreNeitherThrottledNorRetried(t *testing.T) {
	var requests atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		requests.Add(1)
		w.Header().Set("Retry-After", "1")
		w.WriteHeader(http.StatusTooManyRequests)
	}))
	t.Cleanup(server.Close)
	client, err := New(&rest.Config{Host: server.URL, RateLimiter: flowcontrol.NewFakeNeverRateLimiter()}, http.DefaultClient)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.Stream(t.Context(), widgets, "", metav1.ListOptions{}); !apierrors.IsTooManyRequests(err) || requests.Load() != 1 {
		t.Errorf("want the answer of the only request, got %v after %d requests", err, requests.Load())
	}
}

// TestStreamsEndWithTheErrorOfTheTransport: the type distinguishes a limit from a lost connection.
func TestStreamsEndWithTheErrorOfTheTransport(t *testing.T) {
	cause := errors.New("of the transport")
	httpClient := &http.Client{Transport: roundTripper(func(*http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(iotest.ErrReader(cause))}, nil
	})}
	client, err := NewMetadata(&rest.Config{Host: "https://example.org"}, httpClient)
	if err != nil {
		t.Fatal(err)
	}
	events, err := client.Stream(t.Context(), widgets, "ns", metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer events.Close()
	if _, _, err := events.Decode(); !errors.Is(err, cause) {
		t.Errorf("want the error of the transport, got %v", err)
	}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }
