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
)

const forbidden = `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","message":"refused","code":403}`

// TestARefusedDeletionIsNotTriedAllTheTime has a cluster in which Masthead may write copies and not delete them.
func TestARefusedDeletionIsNotTriedAllTheTime(t *testing.T) {
	t.Parallel()
	f := prepareFixture(t)
	var refused atomic.Int32
	f.traffic.SetAnswer(func(req *http.Request) *http.Response {
		if req.Method == http.MethodDelete && strings.Contains(req.URL.Path, "/compositions/") {
			refused.Add(1)
			return answer(http.StatusForbidden, forbidden)
		}
		return nil
	})
	f.start()
	composition := f.composition("aws", "mysqlinstances")
	f.copy(composition, nil)
	f.gaugeIs(1, "masthead_discovery_protected", string(f.cluster))
	f.Delete(f.hub, composition)
	f.Within("Masthead's username is requested again, and is the same", func() error {
		w, ok := f.reconciler.workloads.Get(f.cluster)
		if !ok || !w.user.IsSure(time.Now()) {
			return errors.New("it is not")
		}
		return nil
	})
	// Each failure doubles the time until the next attempt. With an attempt every second, the requests would never stop.
	f.settled()
}

// TestPolicyThatHasJustChangedIsWaitedFor refuses writes, like an API server that has not yet observed a policy with
// Masthead's new username.
func TestPolicyThatHasJustChangedIsWaitedFor(t *testing.T) {
	t.Parallel()
	f := prepareFixture(t)
	f.clock = clocktesting.NewFakePassiveClock(time.Now()) // The policy stays new.
	f.start()
	composition := f.composition("aws", "mysqlinstances")
	f.copy(composition, nil)

	var changed atomic.Bool
	var refused atomic.Int32
	f.traffic.SetUser("another-user")
	f.traffic.SetAnswer(func(req *http.Request) *http.Response {
		switch {
		case req.Method == http.MethodPut && strings.HasSuffix(req.URL.Path, "/validatingadmissionpolicies/"+policyName):
			changed.Store(true)
		case req.Method == http.MethodPut && strings.Contains(req.URL.Path, "/compositions/") && (!changed.Load() || refused.Add(1) < 5):
			return answer(http.StatusForbidden, forbidden)
		}
		return nil
	})
	f.Edit(f.hub, composition, func() {
		_ = unstructured.SetNestedField(composition.Object, "mine", "spec", "writeConnectionSecretsToNamespace")
	})
	// A periodic retry, as after a refusal that is a problem, would take longer than this waits.
	f.copy(composition, sameContent(composition))
	if !changed.Load() || refused.Load() < 5 {
		t.Errorf("want the policy to change and a refusal after it, got %t and %d", changed.Load(), refused.Load())
	}
}

func TestClusterWithoutPoliciesThatForbidsCopiesIsReported(t *testing.T) {
	t.Parallel()
	f := prepareFixture(t)
	f.traffic.SetAnswer(func(req *http.Request) *http.Response {
		switch {
		case strings.Contains(req.URL.Path, "/validatingadmissionpolic"):
			return answer(http.StatusNotFound, "404 page not found")
		case req.Method == http.MethodPost && strings.HasSuffix(req.URL.Path, "/compositions"):
			return answer(http.StatusForbidden, forbidden)
		}
		return nil
	})
	f.start()
	f.composition("aws", "mysqlinstances")
	f.event(fleetv1alpha1.ReasonObjectsForbidden)
}
