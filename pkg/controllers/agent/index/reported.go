// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package index

import (
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/masthead-dev/masthead/pkg/multicluster"
)

// A watch often reports a write before the reconcile has read the response to it. The change cannot be recognised as
// the reconcile's own yet, and would requeue the claim for nothing. Of claims without trouble, that was more than every
// third reconcile. So events of a claim are held while it is reconciled, and dropped if they are exactly what the
// reconcile wrote. All others requeue the claim when the reconcile ends.

// maxReported is how many events of one claim are held. A reconcile without trouble makes three writes; faster changes
// requeue the claim.
const maxReported = 8

// Version identifies a state of an object.
type Version struct {
	UID             types.UID
	ResourceVersion string
}

// NewVersion returns the current state of an object.
func NewVersion(obj *unstructured.Unstructured) Version {
	return Version{UID: obj.GetUID(), ResourceVersion: obj.GetResourceVersion()}
}

// report is a state of a claim, or of its object in the hub, reported by a watch, and what queues the claim for it.
type report struct {
	Version
	queue func()
}

// Reported holds the watch events of claims while they are reconciled. The zero value is ready to use.
type Reported struct {
	mu      sync.Mutex
	waiting map[multicluster.ObjectRequest][]report
}

// Begin records that a reconcile of a claim begins; there is one at a time. The reconcile need not have seen earlier
// events: they have queued the claim again.
func (r *Reported) Begin(req multicluster.ObjectRequest) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.waiting == nil {
		r.waiting = map[multicluster.ObjectRequest][]report{}
	}
	r.waiting[req] = nil
}

// Hold keeps a report until the claim's reconcile ends. It returns false if there is no reconcile, or too many reports
// wait already: then queue the claim now.
func (r *Reported) Hold(req multicluster.ObjectRequest, v Version, queue func()) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	waiting, underWay := r.waiting[req]
	if !underWay || len(waiting) >= maxReported {
		return false
	}
	r.waiting[req] = append(waiting, report{v, queue})
	return true
}

// End records that the reconcile has ended, and returns what queues the claim for the reports received meanwhile that
// it did not write itself.
func (r *Reported) End(req multicluster.ObjectRequest, wrote []Version) []func() {
	r.mu.Lock()
	defer r.mu.Unlock()
	var left []func()
	for _, report := range r.waiting[req] {
		if !slices.Contains(wrote, report.Version) {
			left = append(left, report.queue)
		}
	}
	delete(r.waiting, req)
	return left
}
