// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package multicluster

import (
	"testing"

	"go.uber.org/goleak"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
)

// pendingWatch returns a filtered watch that has an event nobody has received, like that of an informer which is
// stopped.
func pendingWatch() watch.Interface {
	source := watch.NewFakeWithChanSize(1, false)
	source.Add(&metav1.Status{})
	return watch.Filter(source, func(e watch.Event) (watch.Event, bool) { return e, true })
}

func TestUpstreamFilteredWatchLeaks(t *testing.T) {
	base := goleak.IgnoreCurrent()
	w := pendingWatch()
	w.Stop()
	eventually(t, "apimachinery's filter does not leak; is NewInformer needed?", func() bool {
		return stacks("(*filteredWatch).loop") == 1
	})
	if err := goleak.Find(base); err == nil {
		t.Error("apimachinery's filter does not leak; is NewInformer needed?")
	}
	<-w.ResultChan()

	ours := &drainedWatch{Interface: pendingWatch()}
	ours.Stop()
	ours.Stop()
	noLeak(t, base)
}
