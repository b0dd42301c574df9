// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package health

import (
	"strings"
	"unicode"
	"unicode/utf8"

	appsv1alpha1 "github.com/masthead-dev/masthead/apis/apps/v1alpha1"
)

// Bounds of what a Result repeats of an object.
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

// valid makes a Result what the interface promises. Every Result goes through it, so that what makes them need not
// care.
func valid(r Result) Result {
	r.Reason, r.Message = word(r.Reason), bounded(r.Message, maxMessage)
	if r.Reason == "" && r.Health != appsv1alpha1.HealthHealthy {
		// What an object gave as its reason had not one letter in it.
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

// bounded makes what an object says fit to be repeated: it can be of any length, and contain what moves a terminal's
// cursor.
func bounded(text string, limit int) string {
	if len(text) <= limit && utf8.ValidString(text) && !strings.ContainsFunc(text, notGraphic) {
		return text
	}
	const more = "..."
	var b strings.Builder
	n, cut := 0, 0
	for _, c := range text {
		if n == limit-len(more) {
			cut = b.Len()
		}
		if n == limit {
			return b.String()[:cut] + more
		}
		if notGraphic(c) {
			c = ' '
		}
		b.WriteRune(c)
		n++
	}
	return b.String()
}

func notGraphic(c rune) bool { return !unicode.IsGraphic(c) }

// reasonOr is the reason that an object gives, or ours if it gives none.
func reasonOr(theirs, ours string) string {
	if word(theirs) == "" {
		return ours
	}
	return theirs
}

// messageOr is the message that an object gives, or ours if it gives none.
func messageOr(theirs, ours string) string {
	if strings.TrimSpace(theirs) == "" {
		return ours
	}
	return theirs
}

// noStatus is for objects without a status, of a kind that nothing else is known about. That a kind has no status
// subresource does not mean that nobody reports on it: a controller can write the status with the object.
func noStatus(statusExpected bool) Result {
	if !statusExpected {
		return unknown(ReasonNoStatus, "Its kind reports no status; a HealthRule can say when it is healthy")
	}
	return unknown(ReasonNoStatus, "It has no status yet")
}
