// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package health

import (
	"strings"
	"unicode"

	appsv1alpha1 "github.com/masthead-dev/masthead/apis/apps/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/condition"
)

// Bounds of the text that a Result takes from an object.
const (
	maxReason  = 128
	maxMessage = 256
)

func healthy() Result { return Result{Health: appsv1alpha1.HealthHealthy} }

func suspended(reason, message string) Result {
	return Result{Health: appsv1alpha1.HealthSuspended, Reason: reason, Message: message}
}

func progressing(reason, message string) Result {
	return Result{Health: appsv1alpha1.HealthProgressing, Reason: reason, Message: message}
}

func unknown(reason, message string) Result {
	return Result{Health: appsv1alpha1.HealthUnknown, Reason: reason, Message: message}
}

func degraded(reason, message string) Result {
	return Result{Health: appsv1alpha1.HealthDegraded, Reason: reason, Message: message}
}

// valid makes a Result meet the interface's guarantees. Every Result passes through it, so its producers need not.
func valid(r Result) Result {
	r.Reason, r.Message = word(r.Reason), condition.Text(r.Message, maxMessage)
	if r.Reason == "" && r.Health != appsv1alpha1.HealthHealthy {
		// The object's reason had no letters.
		r.Reason = string(r.Health)
	}
	return r
}

// word keeps the letters and digits of a reason.
func word(reason string) string {
	if len(reason) <= maxReason && !strings.ContainsFunc(reason, notInWord) {
		return reason
	}
	var b strings.Builder
	for _, c := range reason {
		if b.Len() == maxReason {
			break
		}
		if !notInWord(c) {
			b.WriteRune(c)
		}
	}
	return b.String()
}

func notInWord(c rune) bool {
	return (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9')
}

// reasonOr returns the object's reason, or the default if it has none.
func reasonOr(theirs, ours string) string {
	if word(theirs) == "" {
		return ours
	}
	return theirs
}

// stateReason returns the reason for a state, which is the state if it is one word, and otherwise the name of its
// field: a sentence can hold anything, and can change all the time.
func stateReason(state, field string) string {
	if strings.ContainsFunc(state, unicode.IsSpace) {
		return field
	}
	return reasonOr(state, field)
}

// messageOr returns the object's message, or the default if it has none.
func messageOr(theirs, ours string) string {
	if strings.TrimSpace(theirs) == "" {
		return ours
	}
	return theirs
}

// noStatus is for objects without a status, of an unknown kind. A kind without a status subresource may still have a
// reporting controller: it can write the status with the object.
func noStatus(statusExpected bool) Result {
	if !statusExpected {
		return unknown(appsv1alpha1.ReasonNoStatus, "Its kind reports no status; a HealthRule can define when it is healthy")
	}
	return unknown(appsv1alpha1.ReasonNoStatus, "It has no status yet")
}
