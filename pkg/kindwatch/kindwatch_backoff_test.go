// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package kindwatch

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	clocktesting "k8s.io/utils/clock/testing"
)

// TestAKindStopsWhileItBacksOff holds a kind in its back-off, whose time does not pass.
func TestAKindStopsWhileItBacksOff(t *testing.T) {
	var refused atomic.Bool
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		refused.Store(true)
		w.WriteHeader(http.StatusTooManyRequests)
	}))
	defer server.Close()
	clk := clocktesting.NewFakeClock(time.Now())
	w, stop := start(t, &rest.Config{Host: server.URL, QPS: -1}, func(Event) {}, func(o *Options) { o.Clock = clk })
	w.Set("test", configMaps)
	eventually(t, "the kind backs off", func() error {
		if !refused.Load() || !clk.HasWaiters() {
			return errors.New("it does not")
		}
		return nil
	})
	stop()
	if clk.HasWaiters() {
		t.Error("want no timer left")
	}
}
