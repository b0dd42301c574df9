// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/internal/test/agenttest"
	"github.com/masthead-dev/masthead/internal/test/controllertest"
)

// lateWatches delays what the hub's watches report of the fixture's kind, while it is locked.
type lateWatches struct {
	sync.RWMutex

	group string
}

func (l *lateWatches) wrap(next http.RoundTripper) http.RoundTripper {
	return controllertest.RoundTripper(func(req *http.Request) (*http.Response, error) {
		answer, err := next.RoundTrip(req)
		if err == nil && strings.Contains(req.URL.Path, "/apis/"+l.group+"/") && req.URL.Query().Get("watch") == "true" {
			answer.Body = lateBody{ReadCloser: answer.Body, until: &l.RWMutex}
		}
		return answer, err
	})
}

type lateBody struct {
	io.ReadCloser

	until *sync.RWMutex
}

// Read implements io.Reader.
func (b lateBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.until.RLock()
	defer b.until.RUnlock()
	return n, err
}

// lateFixture has a claim "db" whose object is in the hub, and can delay the watch of it.
func lateFixture(t *testing.T) (f *fixture, watches *lateWatches, hub *unstructured.Unstructured) {
	t.Helper()
	f = prepareFixture(t)
	watches = &lateWatches{group: f.Group}
	f.HubConfig = rest.CopyConfig(f.HubConfig)
	f.HubConfig.Wrap(watches.wrap)
	f.start()
	f.WaitForServed()
	f.CreateClaim("db")
	return f, watches, f.WaitForPushed("db")
}

// delay delays the watch until report is called, or the test ends.
func (l *lateWatches) delay(t *testing.T) (report func()) {
	t.Helper()
	l.Lock()
	report = sync.OnceFunc(l.Unlock)
	t.Cleanup(report) // Before the agent is stopped.
	return report
}

// hasAnother checks that a claim has another object in the hub.
func (f *fixture) hasAnother(former *unstructured.Unstructured) {
	f.T.Helper()
	f.WaitForSynced("db", fleetv1alpha1.ReasonSynced)
	if again := f.WaitForPushed("db"); again.GetUID() == former.GetUID() {
		f.T.Errorf("want another object, got %s again", former.GetUID())
	}
}

// TestAClaimDoesNotTakeOverWhatIsDeletedForItsPredecessor has a claim deleted, its finalizer removed by force, and the
// claim created again, all before the hub's watch reports that its object is being deleted. The new claim took the
// object over, and then reported that it had been deleted in the hub, until its owner requested it again.
func TestAClaimDoesNotTakeOverWhatIsDeletedForItsPredecessor(t *testing.T) {
	t.Parallel()
	f, watches, hub := lateFixture(t)
	f.Edit(f.Hub, hub, func() { hub.SetFinalizers([]string{"example.org/crossplane"}) })
	f.MarkReady("db", "before")
	f.WaitForSynced("db", fleetv1alpha1.ReasonSynced)
	f.WaitForIdle()

	report := watches.delay(t)
	claim := f.NewClaim(f.Namespace, "db")
	f.Edit(f.Workload, claim, func() {})
	if err := f.Workload.Delete(f.Ctx, claim); err != nil {
		t.Fatal(err)
	}
	f.Within("the object is being deleted", func() error {
		live, err := f.GetClaim(f.Hub, f.Target, "db")
		if err == nil && live.GetDeletionTimestamp() == nil {
			err = errors.New("it is not")
		}
		return err
	})
	f.Edit(f.Workload, claim, func() { claim.SetFinalizers(nil) })
	f.WaitForGone(f.Workload, f.Namespace, "db")
	f.CreateClaim("db")
	f.WaitForSynced("db", fleetv1alpha1.ReasonRecreating)

	report()
	f.Edit(f.Hub, hub, func() { hub.SetFinalizers(nil) })
	f.hasAnother(hub)

	// The same with an object that is deleted in the hub. The deletion of its claim finds that there is none, and
	// the watch reports that later than the new claim, which waits for it.
	hub = f.WaitForPushed("db")
	f.WaitForIdle()
	report = watches.delay(t)
	if err := errors.Join(f.Hub.Delete(f.Ctx, hub), f.Workload.Delete(f.Ctx, f.NewClaim(f.Namespace, "db"))); err != nil {
		t.Fatal(err)
	}
	f.WaitForGone(f.Workload, f.Namespace, "db")
	f.CreateClaim("db")
	f.Within("the new claim is protected", func() error {
		again, err := f.GetClaim(f.Workload, f.Namespace, "db")
		if err == nil && !agenttest.HasOurFinalizer(again) {
			err = errors.New("it is not")
		}
		return err
	})
	report()
	f.hasAnother(hub)
	f.WaitForIdle()
	f.hasAnother(hub)
}
