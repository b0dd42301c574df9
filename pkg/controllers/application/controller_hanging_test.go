// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package application

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cluster"

	"github.com/masthead-dev/masthead/internal/test/applicationtest"
	"github.com/masthead-dev/masthead/internal/test/controllertest"
	"github.com/masthead-dev/masthead/pkg/providers/connection"
)

// A cluster that accepts requests and answers none does not block others: not on engagement, nor in the queue, nor for
// a list slot.
func TestAClusterThatHangsDelaysNoOther(t *testing.T) {
	t.Parallel()
	// Requests that hang last for longer than the test waits.
	f := newFixture(t, func(o *Options) {
		o.MaxConcurrentReconciles, o.RequestTimeout, o.ReconciliationTimeout = 2, time.Hour, time.Hour
	})
	requested := make(chan struct{}, 1000)
	cfg := rest.CopyConfig(f.lane.workload.Config)
	cfg.Wrap(func(http.RoundTripper) http.RoundTripper {
		return controllertest.RoundTripper(func(req *http.Request) (*http.Response, error) {
			select {
			case requested <- struct{}{}:
			default:
			}
			<-req.Context().Done()
			return nil, req.Context().Err()
		})
	})
	cl, err := cluster.New(cfg, func(o *cluster.Options) {
		o.Scheme = controllertest.Scheme()
		o.MapperProvider = func(*rest.Config, *http.Client) (meta.RESTMapper, error) { return meta.NewDefaultRESTMapper(nil), nil }
	})
	if err != nil {
		t.Fatal(err)
	}
	const hung = "capi/fleet/hung"
	f.fleet.Set(connection.Cluster{Name: hung, State: connection.StateConnected, Enrolment: connection.Enrolment{Class: f.Class.Name}})
	ctx, disengage := context.WithCancel(f.T.Context())
	f.manager.Gate.Open(hung)
	if err := f.manager.Engage(ctx, hung, cl); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		disengage()
		f.manager.Gate.Forget(hung)
	})
	f.Within("it receives a request", func() error {
		if len(requested) == 0 {
			return errors.New("it was not")
		}
		return nil
	})
	app := f.CreateApplication("shop", applicationtest.Components(applicationtest.ConfigMaps, "settings"))
	f.WaitForOwned(f.CreateConfigMap("settings", "shop"), app, true)
	f.WaitForInstalled(app, "settings")
}
