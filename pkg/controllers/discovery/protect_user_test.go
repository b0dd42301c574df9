// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package discovery

import (
	"errors"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clocktesting "k8s.io/utils/clock/testing"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/internal/test/controllertest"
	"github.com/masthead-dev/masthead/internal/test/discoverytest"
)

const forbidden = `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","message":"refused","code":403}`

// TestARefusedDeletionIsNotTriedAllTheTime has a cluster in which Masthead may write copies and not delete them.
func TestARefusedDeletionIsNotTriedAllTheTime(t *testing.T) {
	t.Parallel()
	f := prepareFixture(t)
	var refused atomic.Int32
	f.Traffic.SetAnswer(func(req *http.Request) *http.Response {
		if req.Method == http.MethodDelete && strings.Contains(req.URL.Path, "/compositions/") {
			refused.Add(1)
			return controllertest.JSONAnswer(req, http.StatusForbidden, forbidden)
		}
		return nil
	})
	f.start()
	composition := f.CreateComposition("aws", "mysqlinstances")
	f.WaitForCopy(composition, nil)
	f.gaugeIs(1, "masthead_discovery_protected", string(f.Cluster))
	f.Delete(f.Hub, composition)
	f.Within("Masthead's username is requested again, and is the same", func() error {
		w, ok := f.reconciler.workloads.Get(f.Cluster)
		if !ok || !w.user.IsSure(time.Now()) {
			return errors.New("it is not")
		}
		return nil
	})
	// Each failure doubles the time until the next attempt. With an attempt every second, the requests would never stop.
	f.WaitForIdle()
}

// TestPolicyThatHasJustChangedIsWaitedFor refuses writes, like an API server that has not yet observed a policy with
// Masthead's new username.
func TestPolicyThatHasJustChangedIsWaitedFor(t *testing.T) {
	t.Parallel()
	f := prepareFixture(t)
	f.clock = clocktesting.NewFakePassiveClock(time.Now()) // The policy stays new.
	f.start()
	composition := f.CreateComposition("aws", "mysqlinstances")
	f.WaitForCopy(composition, nil)

	var changed atomic.Bool
	var refused atomic.Int32
	f.Traffic.SetUser("another-user")
	f.Traffic.SetAnswer(func(req *http.Request) *http.Response {
		switch {
		case req.Method == http.MethodPut && strings.HasSuffix(req.URL.Path, "/validatingadmissionpolicies/"+policyName):
			changed.Store(true)
		case req.Method == http.MethodPut && strings.Contains(req.URL.Path, "/compositions/") && (!changed.Load() || refused.Add(1) < 5):
			return controllertest.JSONAnswer(req, http.StatusForbidden, forbidden)
		}
		return nil
	})
	f.Edit(f.Hub, composition, func() {
		_ = unstructured.SetNestedField(composition.Object, "mine", "spec", "writeConnectionSecretsToNamespace")
	})
	// A periodic retry, as after a refusal that is a problem, would take longer than this waits.
	f.WaitForCopy(composition, discoverytest.SameContent(composition))
	if !changed.Load() || refused.Load() < 5 {
		t.Errorf("want the policy to change and a refusal after it, got %t and %d", changed.Load(), refused.Load())
	}
}

func TestClusterWithoutPoliciesThatForbidsCopiesIsReported(t *testing.T) {
	t.Parallel()
	f := prepareFixture(t)
	f.Traffic.SetAnswer(func(req *http.Request) *http.Response {
		switch {
		case strings.Contains(req.URL.Path, "/validatingadmissionpolic"):
			return controllertest.JSONAnswer(req, http.StatusNotFound, "404 page not found")
		case req.Method == http.MethodPost && strings.HasSuffix(req.URL.Path, "/compositions"):
			return controllertest.JSONAnswer(req, http.StatusForbidden, forbidden)
		}
		return nil
	})
	f.start()
	f.CreateComposition("aws", "mysqlinstances")
	f.WaitForEvent(fleetv1alpha1.ReasonObjectsForbidden)
}
