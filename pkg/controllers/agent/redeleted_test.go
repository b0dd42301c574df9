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

	"k8s.io/client-go/rest"

	"github.com/masthead-dev/masthead/pkg/controllers/agent/reason"
	"github.com/masthead-dev/masthead/test/controllertest"
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

// TestAClaimDoesNotTakeOverWhatIsDeletedForItsPredecessor has a claim deleted, its finalizer removed by force, and the
// claim created again, all before the hub's watch reports that its object is being deleted. The new claim took the
// object over, and then reported that it had been deleted in the hub, until somebody asked for it again.
func TestAClaimDoesNotTakeOverWhatIsDeletedForItsPredecessor(t *testing.T) {
	t.Parallel()
	f := prepareFixture(t)
	watches := &lateWatches{group: f.group}
	f.hubConfig = rest.CopyConfig(f.hubConfig)
	f.hubConfig.Wrap(watches.wrap)
	f.start()
	f.served()
	f.claim("db")
	hub := f.pushed("db")
	f.Edit(f.hub, hub, func() { hub.SetFinalizers([]string{"example.org/crossplane"}) })
	f.ready("db", "before")
	f.synced("db", reason.ReasonSynced)
	f.settled()

	watches.Lock()
	report := sync.OnceFunc(watches.Unlock)
	t.Cleanup(report) // Before the agent is stopped.
	claim := f.object(f.namespace, "db")
	f.Edit(f.workload, claim, func() {})
	if err := f.workload.Delete(f.Ctx, claim); err != nil {
		t.Fatal(err)
	}
	f.Within("the object is being deleted", func() error {
		live, err := f.get(f.hub, f.target, "db")
		if err == nil && live.GetDeletionTimestamp() == nil {
			err = errors.New("it is not")
		}
		return err
	})
	f.Edit(f.workload, claim, func() { claim.SetFinalizers(nil) })
	f.gone(f.workload, f.namespace, "db")
	f.claim("db")
	f.synced("db", reason.ReasonRecreating)

	report()
	f.Edit(f.hub, hub, func() { hub.SetFinalizers(nil) })
	f.synced("db", reason.ReasonSynced)
	if again := f.pushed("db"); again.GetUID() == hub.GetUID() {
		t.Errorf("want another object, got %s again", hub.GetUID())
	}
}
