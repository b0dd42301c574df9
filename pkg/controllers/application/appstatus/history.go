// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package appstatus

import (
	"fmt"
	"slices"
	"time"

	"golang.org/x/time/rate"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"

	appsv1alpha1 "github.com/masthead-dev/masthead/apis/apps/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/condition"
	"github.com/masthead-dev/masthead/pkg/controllers/application/bounds"
	"github.com/masthead-dev/masthead/pkg/controllers/application/record"
)

const (
	// maxHistoryMessage bounds the messages in the history, in characters.
	maxHistoryMessage = 128

	// A flapping Application gets at most flapping Events in flappingWithin.
	flapping       = 5
	flappingWithin = 10 * time.Minute

	// All Applications of a cluster get at most announcementsPerSecond Events, after a burst of announcementsAtOnce.
	announcementsPerSecond = 1
	announcementsAtOnce    = 100
)

// appendHistory is the history of the new status: the old one, plus an entry if the health changed. A status of an
// earlier version, which has a health but no history, gets no entry before its health changes.
func appendHistory(old appsv1alpha1.ApplicationStatus, health appsv1alpha1.Health, message string, now metav1.Time) []appsv1alpha1.HealthChange {
	if old.Health == health {
		return old.History
	}
	change := appsv1alpha1.HealthChange{Time: now, Health: health, Message: condition.Text(message, maxHistoryMessage)}
	history := slices.Concat([]appsv1alpha1.HealthChange{change}, old.History)
	return history[:min(len(history), appsv1alpha1.MaxHistory)]
}

// isWorthAnEvent reports whether the latest change in a history gets an Event: not the first, which is expected, and
// not one of many in a short time, which the history shows.
func isWorthAnEvent(old, status appsv1alpha1.ApplicationStatus) bool {
	if old.Health == "" || old.Health == status.Health || len(status.History) == 0 {
		return false
	}
	now, recent := status.History[0].Time, 0
	for _, c := range status.History {
		if now.Sub(c.Time.Time) < flappingWithin {
			recent++
		}
	}
	return recent <= flapping
}

// Announcements are the Events of the Applications of a cluster. They are best effort: one that cannot be written is
// lost.
type Announcements struct {
	recorder events.EventRecorder
	clock    clock.PassiveClock
	limit    *rate.Limiter
}

// NewAnnouncements returns those of one cluster.
func NewAnnouncements(recorder events.EventRecorder, clk clock.PassiveClock) *Announcements {
	return &Announcements{recorder: recorder, clock: clk, limit: rate.NewLimiter(announcementsPerSecond, announcementsAtOnce)}
}

// Changed emits an Event about a change of health. Events with the same action are counted in one object for some
// minutes, so each health has its own action.
func (a *Announcements) Changed(app *appsv1alpha1.Application, status appsv1alpha1.ApplicationStatus) {
	if !isWorthAnEvent(app.Status, status) || !a.limit.AllowN(a.clock.Now(), 1) {
		return
	}
	about := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
		Namespace: app.Namespace, Name: app.Name, UID: app.UID,
	}}
	about.SetGroupVersionKind(record.ApplicationKind.GroupVersionKind)
	severity := corev1.EventTypeNormal
	if bounds.HealthRank(status.Health) >= bounds.HealthRank(appsv1alpha1.HealthUnknown) {
		severity = corev1.EventTypeWarning
	}
	note := fmt.Sprintf("The health was %s and is %s.", app.Status.Health, status.Health)
	if status.Message != "" {
		note += " " + status.Message
	}
	a.recorder.Eventf(about, nil, severity, appsv1alpha1.ReasonHealthChanged, "Become"+string(status.Health), "%s", condition.Text(note, bounds.Message))
}
