// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package health

import (
	"strings"

	appsv1alpha1 "github.com/masthead-dev/masthead/apis/apps/v1alpha1"
)

// maxWord is longer than each word that wordHealth knows.
const maxWord = 24

// wordHealth returns the health that a phase or state word means, regardless of the kind; false for an unknown word.
// Case, spaces and separators are ignored.
func wordHealth(phase string) (appsv1alpha1.Health, bool) {
	var buffer [maxWord]byte
	n := 0
	for i := range len(phase) {
		c := phase[i]
		switch {
		case c == ' ' || c == '_' || c == '-':
			continue
		case c >= 'A' && c <= 'Z':
			c += 'a' - 'A'
		}
		if n == maxWord {
			return "", false
		}
		buffer[n] = c
		n++
	}
	switch string(buffer[:n]) {
	case "ready", "running", "active", "available", "bound", "succeeded", "success", "successful", "complete", "completed", "deployed",
		"healthy", "ok", "green", "provisioned", "installed", "established", "connected", "synced", "insync", "synchronized", "online", "up",
		"applied", "issued", "valid", "finished", "done", "reconciled", "attached", "enabled", "operational", "stable", "inuse":
		return appsv1alpha1.HealthHealthy, true
	case "pending", "creating", "provisioning", "initializing", "initialising", "init", "new", "starting", "updating", "upgrading", "deploying",
		"installing", "progressing", "inprogress", "reconciling", "processing", "waiting", "scheduled", "scheduling", "scaling", "restarting",
		"deleting", "terminating", "binding", "building", "configuring", "preparing", "syncing", "migrating", "restoring", "queued",
		"unready", "notready", "stopping", "resuming", "importing", "applying", "modifying", "connecting", "joining", "pausing", "yellow":
		return appsv1alpha1.HealthProgressing, true
	case "failed", "failure", "failing", "error", "errored", "degraded", "red", "unhealthy", "lost", "invalid", "rejected", "unreachable",
		"unavailable", "crashed", "dead", "offline", "denied", "partiallyfailed", "misconfigured", "conflict", "disconnected", "down",
		"critical", "stalled", "timeout", "timedout", "aborted", "inconclusive":
		return appsv1alpha1.HealthDegraded, true
	case "paused", "suspended", "hibernated", "hibernating", "stopped", "disabled", "inactive":
		return appsv1alpha1.HealthSuspended, true
	}
	return "", false
}

// findPhase returns the word that sums up an object's state; empty if there is none.
func findPhase(status fields) string {
	for _, name := range [...]string{"phase", "state", "status", "health", "healthStatus"} {
		switch value := status[name].(type) {
		case string:
			if strings.TrimSpace(value) != "" {
				return value
			}
		case map[string]any:
			// Argo's kinds and others have the word and a message in an object.
			if word, ok := value["status"].(string); ok && name != "status" && word != "" {
				return word
			}
		}
	}
	return ""
}
