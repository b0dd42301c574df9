// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"bytes"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/client-go/rest"
	mcr "sigs.k8s.io/multicluster-runtime/pkg/multicluster"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/internal/test/controllertest"
	"github.com/masthead-dev/masthead/pkg/install"
)

const refusedByPolicy = `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403,"message":"` +
	`customresourcedefinitions.apiextensions.k8s.io \"x\" is forbidden: ValidatingAdmissionPolicy 'masthead-read-only' with binding ` +
	`'masthead-read-only' denied request: Masthead keeps this"}`

// TestRefusalByThePolicyIsNoProblemWhileTheUserChanges: a cluster refuses definitions because our username there has
// changed, and its policy does not allow the new one yet.
func TestRefusalByThePolicyIsNoProblemWhileTheUserChanges(t *testing.T) {
	t.Parallel()
	f := prepareFixture(t)
	var queries, refused atomic.Int32
	users := &install.PolicyUsers{}
	users.OnDoubt(func(mcr.ClusterName) { queries.Add(1) })
	_, doubts := users.ForCluster(f.Cluster).Name()
	users.ForCluster(f.Cluster).Learn("before", doubts, time.Now())
	f.options = func(o *Options) { o.Users = users }
	f.WorkloadConfig = rest.CopyConfig(f.WorkloadConfig)
	f.WorkloadConfig.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return controllertest.RoundTripper(func(req *http.Request) (*http.Response, error) {
			if req.Method != http.MethodPost || !strings.HasSuffix(req.URL.Path, "/customresourcedefinitions") || refused.Add(1) > 2 {
				return next.RoundTrip(req)
			}
			return &http.Response{
				StatusCode: http.StatusForbidden, Status: http.StatusText(http.StatusForbidden), ProtoMajor: 1, ProtoMinor: 1, Request: req,
				Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(bytes.NewBufferString(refusedByPolicy)),
			}, nil
		})
	})
	f.start()
	// The retry after a refusal that is a problem would take longer than this waits.
	f.WaitForServed()
	if queries.Load() != 1 || refused.Load() < 3 {
		t.Errorf("want one query of the user as whom the cluster knows Masthead, got %d for %d attempts", queries.Load(), refused.Load())
	}
	l := &eventsv1.EventList{}
	if err := f.Hub.List(f.Ctx, l); err != nil {
		t.Fatal(err)
	}
	for _, e := range l.Items {
		if e.Reason == fleetv1alpha1.ReasonDefinitionForbidden && e.Regarding.Name == f.Class {
			t.Errorf("want no false alarm, got %q", e.Note)
		}
	}
}
