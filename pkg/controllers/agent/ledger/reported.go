// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/masthead-dev/masthead/pkg/controllers/agent/request"
)

// A watch often reports what a reconcile wrote before the reconcile has read the answer to its write. Then nobody can
// tell yet that the change is the reconcile's own, and the claim would be looked at once more to find nothing to do. Of
// claims that travel without trouble, that was more than every third reconcile. So what is reported of a claim while it
// is reconciled waits for the end of the reconcile, and is dropped if it is exactly what the reconcile wrote.
// Everything else has the claim looked at again, as if it had been reported at the end.

// maxReported is how many reports of one claim wait. A reconcile of a claim without trouble makes three writes; whoever
// changes a claim faster has it looked at again.
const maxReported = 8

// Version identifies a state of an object.
type Version struct {
	UID             types.UID
	ResourceVersion string
}

// VersionOf is the state that an object is in.
func VersionOf(obj *unstructured.Unstructured) Version {
	return Version{UID: obj.GetUID(), ResourceVersion: obj.GetResourceVersion()}
}

// Report is a state of a claim, or of its object in the hub, that a watch reported.
type Report struct {
	Version
	// InHub is whether it is the object in the hub.
	InHub bool
	// Changed is whether the state of a claim is news to the hub; see package metrics.
	Changed bool
	// At is when it was reported.
	At time.Time
}

// Reported has what is reported of claims while they are reconciled. The zero value knows of no reconcile.
type Reported struct {
	mu      sync.Mutex
	waiting map[request.Request][]Report
}

// Begin notes that a reconcile of a claim begins, of which there is one at a time. What is reported before that, the
// reconcile does not need to have seen: the claim is queued again.
func (r *Reported) Begin(req request.Request) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.waiting == nil {
		r.waiting = map[request.Request][]Report{}
	}
	r.waiting[req] = nil
}

// Hold keeps a report until the reconcile of the claim ends. It returns false if there is no reconcile, or too much
// waits already: then the claim is to be queued now.
func (r *Reported) Hold(req request.Request, report Report) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	waiting, underWay := r.waiting[req]
	if !underWay || len(waiting) >= maxReported {
		return false
	}
	r.waiting[req] = append(waiting, report)
	return true
}

// End notes that the reconcile has ended, and returns what was reported meanwhile that it did not write itself.
func (r *Reported) End(req request.Request, wrote []Version) []Report {
	r.mu.Lock()
	defer r.mu.Unlock()
	var left []Report
	for _, report := range r.waiting[req] {
		if !slices.Contains(wrote, report.Version) {
			left = append(left, report)
		}
	}
	delete(r.waiting, req)
	return left
}
