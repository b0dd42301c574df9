// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package multicluster

import (
	"context"
	"io"
	"net/http"
	"time"

	utilnet "k8s.io/apimachinery/pkg/util/net"
)

// WithTimeout returns a transport whose requests, including reading the response, end after d at the latest. It
// replaces http.Client.Timeout for watches: that keeps a goroutine for each open request, of which an idle fleet has
// eight or more per cluster. A nil transport is http.DefaultTransport.
func WithTimeout(next http.RoundTripper, d time.Duration) http.RoundTripper {
	if next == nil {
		next = http.DefaultTransport
	}
	return &timeoutTransport{next: next, d: d}
}

type timeoutTransport struct {
	next http.RoundTripper
	d    time.Duration
}

var _ utilnet.RoundTripperWrapper = &timeoutTransport{}

// RoundTrip implements http.RoundTripper.
func (t *timeoutTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithTimeout(req.Context(), t.d)
	resp, err := t.next.RoundTrip(req.WithContext(ctx))
	if err != nil {
		cancel()
		return nil, err
	}
	resp.Body = &timeoutBody{ReadCloser: resp.Body, cancel: cancel}
	return resp, nil
}

// WrappedRoundTripper lets client-go close idle connections.
func (t *timeoutTransport) WrappedRoundTripper() http.RoundTripper { return t.next }

// timeoutBody stops the timer of its request when the response has ended.
type timeoutBody struct {
	io.ReadCloser

	cancel context.CancelFunc
}

// Read implements io.Reader.
func (b *timeoutBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil {
		b.cancel()
	}
	return n, err
}

// Close implements io.Closer.
func (b *timeoutBody) Close() error {
	err := b.ReadCloser.Close()
	b.cancel()
	return err
}
