// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package health

import (
	"iter"
	"strings"

	appsv1alpha1 "github.com/masthead-dev/masthead/apis/apps/v1alpha1"
)

// maxWord is longer than each word that is known.
const maxWord = 28

// folded is a word in small letters without separators. Nothing is allocated for it.
type folded struct {
	buffer [maxWord]byte
	length int
}

// fold folds a word; one that is too long for any known word becomes empty.
func fold(word string) (f folded) {
	for i := range len(word) {
		c := word[i]
		switch {
		case isSeparator(c):
			continue
		case c >= 'A' && c <= 'Z':
			c += 'a' - 'A'
		}
		if f.length == maxWord {
			return folded{}
		}
		f.buffer[f.length] = c
		f.length++
	}
	return f
}

func (f *folded) bytes() []byte { return f.buffer[:f.length] }

func isSeparator(c byte) bool { return c == ' ' || c == '_' || c == '-' || c == '.' }

// wordHealth returns the health that a phase or state word means, regardless of the kind; false for an unknown word.
// Case, spaces and separators are ignored. A compound such as CreateFailed or ApplyingChanges has the meaning of one of
// its words, but is never Healthy because of one.
func wordHealth(phase string) (appsv1alpha1.Health, bool) {
	if health, known := exactHealth(phase); known {
		return health, true
	}
	if saysFailed(phase) {
		return appsv1alpha1.HealthDegraded, true
	}
	negated := false
	for word := range wordsIn(phase) {
		health, known := exactHealth(word)
		switch {
		case negated && known && health == appsv1alpha1.HealthHealthy, known && health == appsv1alpha1.HealthProgressing:
			return appsv1alpha1.HealthProgressing, true
		}
		negated = isNegation(word)
	}
	return "", false
}

func exactHealth(word string) (appsv1alpha1.Health, bool) {
	f := fold(word)
	switch string(f.bytes()) {
	case "ready", "running", "active", "available", "bound", "succeeded", "success", "successful", "complete", "completed", "deployed",
		"healthy", "ok", "green", "provisioned", "installed", "established", "connected", "synced", "insync", "synchronized", "online", "up",
		"applied", "issued", "valid", "finished", "done", "reconciled", "attached", "enabled", "operational", "stable", "inuse",
		"compliant", "exists", "healthok":
		return appsv1alpha1.HealthHealthy, true
	case "pending", "creating", "provisioning", "initializing", "initialising", "init", "new", "starting", "updating", "upgrading", "deploying",
		"installing", "progressing", "inprogress", "reconciling", "processing", "waiting", "scheduled", "scheduling", "scaling", "restarting",
		"deleting", "terminating", "binding", "building", "configuring", "preparing", "syncing", "migrating", "restoring", "queued",
		"unready", "notready", "stopping", "resuming", "importing", "applying", "modifying", "connecting", "joining", "pausing", "yellow",
		"retrying", "requested", "promoting", "finalizing", "finalising":
		return appsv1alpha1.HealthProgressing, true
	case "failed", "failure", "failing", "error", "errored", "degraded", "red", "unhealthy", "lost", "invalid", "rejected", "unreachable",
		"unavailable", "crashed", "dead", "offline", "denied", "partiallyfailed", "misconfigured", "conflict", "disconnected", "down",
		"critical", "stalled", "timeout", "timedout", "aborted", "inconclusive", "missing", "notfound", "warning", "warn", "healthwarn",
		"healtherr", "canceled", "cancelled", "noncompliant", "outofsync":
		return appsv1alpha1.HealthDegraded, true
	case "paused", "suspended", "hibernated", "hibernating", "stopped", "disabled", "inactive":
		return appsv1alpha1.HealthSuspended, true
	}
	return "", false
}

// wordsIn yields the words of a name in camel case, or with separators.
func wordsIn(name string) iter.Seq[string] {
	return func(yield func(string) bool) {
		start := 0
		for i := 1; i <= len(name); i++ {
			if i < len(name) && !startsWord(name, i) {
				continue
			}
			word := strings.Trim(name[start:i], "_-. :,;")
			start = i
			if word != "" && !yield(word) {
				return
			}
		}
	}
}

// lastWord returns the last word of a name, and the one before it.
func lastWord(name string) (before, last string) {
	for word := range wordsIn(name) {
		before, last = last, word
	}
	return before, last
}

// startsWord reports whether a word begins at a position: at a capital after a lower-case letter, or after a separator.
func startsWord(s string, i int) bool {
	before, c := s[i-1], s[i]
	upper := c >= 'A' && c <= 'Z'
	lowerNext := i+1 < len(s) && s[i+1] >= 'a' && s[i+1] <= 'z'
	return isSeparator(before) || upper && (before >= 'a' && before <= 'z' || lowerNext)
}

// saysFailed reports whether a word in a reason such as "ReconcileFailed" or "CREATE_FAILED" means failure, and is not
// negated, as in "NoErrors".
func saysFailed(reason string) bool {
	before := ""
	for word := range wordsIn(reason) {
		if isFailureWord(word) && !isNegation(before) || strings.EqualFold(word, "found") && strings.EqualFold(before, "not") {
			return true
		}
		before = word
	}
	return false
}

func isNegation(word string) bool {
	return strings.EqualFold(word, "no") || strings.EqualFold(word, "not") || strings.EqualFold(word, "non") ||
		strings.EqualFold(word, "never") || strings.EqualFold(word, "without")
}

func isFailureWord(word string) bool {
	f := fold(word)
	switch string(f.bytes()) {
	case "failed", "failure", "failures", "fail", "fails", "failing", "err", "error", "errors", "errored", "invalid", "denied", "forbidden",
		"unauthorized", "rejected", "timeout", "exceeded", "unsupported", "misconfigured", "conflict", "degraded", "unhealthy", "stalled",
		"cannot", "unreachable", "irreconcilable", "infeasible", "crashed", "lost", "aborted", "violation", "violations",
		"unrecoverable", "mismatch", "mismatched", "exhausted", "corrupted", "blocked", "expired", "refused", "fatal", "terminal", "pressure":
		return true
	}
	return false
}

// beginsWithFailure reports whether a message begins as reports of failures do: "Error: ...", "Failed to ...".
func beginsWithFailure(message string) bool {
	first, _, _ := strings.Cut(message, " ")
	switch first = strings.TrimRight(first, ":,"); {
	case strings.EqualFold(first, "unable"):
		return true
	case strings.EqualFold(first, "failed"), strings.EqualFold(first, "error"), strings.EqualFold(first, "cannot"):
		return true
	}
	return false
}

// saysMissing reports whether a name contains that word. What is missing can still come, so that it is a failure only
// where nothing else is known.
func saysMissing(name string) bool {
	for word := range wordsIn(name) {
		if strings.EqualFold(word, "missing") {
			return true
		}
	}
	return false
}

// isPause reports whether a reason such as ReconcilePaused tells that the owner has paused the object.
func isPause(reason string) bool {
	before, last := lastWord(reason)
	return !isNegation(before) && (strings.EqualFold(last, "paused") || strings.EqualFold(last, "suspended") || strings.EqualFold(last, "hibernated"))
}

// phaseNames are the fields that sum up an object's state.
func phaseNames() [5]string { return [...]string{"phase", "state", "status", "health", "healthStatus"} }

// findPhase returns the first word that sums up an object's state; empty if there is none.
func findPhase(status fields) string {
	for _, name := range phaseNames() {
		if word := phaseWord(status, name); word != "" {
			return word
		}
	}
	return ""
}

// phaseWord returns the word in a field. Argo's kinds and others have the word and a message in an object.
func phaseWord(status fields, name string) string {
	switch value := status[name].(type) {
	case string:
		if strings.TrimSpace(value) != "" {
			return value
		}
	case map[string]any:
		if name != "status" {
			return fields(value).text("status")
		}
	}
	return ""
}
