// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/masthead-dev/masthead/internal/test/agenttest"
	"github.com/masthead-dev/masthead/pkg/hubidentity"
	"github.com/masthead-dev/masthead/pkg/kindwatch"
)

func TestVanished(t *testing.T) {
	obj := func(finalizer string, deleting bool) *unstructured.Unstructured {
		u := &unstructured.Unstructured{Object: map[string]any{}}
		u.SetFinalizers([]string{finalizer})
		if deleting {
			now := metav1.Now()
			u.SetDeletionTimestamp(&now)
		}
		return u
	}
	for name, tc := range map[string]struct {
		reason string
		event  kindwatch.Event
		want   bool
	}{
		"Slipped":  {reason: "Our finalizer, and no sign of a deletion that waited for it.", event: kindwatch.Event{Type: kindwatch.Deleted, Object: obj(agenttest.OurFinalizer, false)}, want: true},
		"Forced":   {reason: "A user removed the finalizer by force.", event: kindwatch.Event{Type: kindwatch.Deleted, Object: obj(agenttest.OurFinalizer, true)}},
		"Relisted": {reason: "No event shows how it was deleted.", event: kindwatch.Event{Type: kindwatch.Deleted, Relisted: true, Object: obj(agenttest.OurFinalizer, false)}},
		"Released": {reason: "It did not have our finalizer.", event: kindwatch.Event{Type: kindwatch.Deleted, Object: obj("other", false)}},
		"Updated":  {reason: "It did not go at all.", event: kindwatch.Event{Type: kindwatch.Updated, Object: obj(agenttest.OurFinalizer, false)}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := vanished(tc.event, hubidentity.Owner{ID: agenttest.OurHub}); got != tc.want {
				t.Errorf("%s want %v, got %v", tc.reason, tc.want, got)
			}
		})
	}
}
