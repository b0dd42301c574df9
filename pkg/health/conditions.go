// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package health

import (
	"strings"

	appsv1alpha1 "github.com/masthead-dev/masthead/apis/apps/v1alpha1"
)

// polarity says what True means for a type of condition. docs/health.md has the table for users.
type polarity int

const (
	// silent conditions are of types that do not concern health in general.
	silent polarity = iota

	// goal: True is desired; False means the controller is working towards it.
	goal

	// verdict: True is desired; False means an attempt failed.
	verdict

	// failure: True means failure; False means nothing.
	failure

	// pause: True means the owner has paused the object; False means nothing.
	pause

	// work: True means the controller is working; False means nothing.
	work

	// begun: True means a first step is done and others follow, so it does not make an object Healthy.
	begun
)

// classifyType returns the polarity of a type of condition, regardless of the kind.
func classifyType(conditionType string) polarity {
	switch conditionType {
	case "Ready", "Available", "Programmed", "Established", "Bound", "Provisioned", "Deployed", "Installed", "Running", "Active",
		"Complete", "Completed", "Issued", "Connected", "Online":
		return goal
	case "Initialized", "Released", "Created", "Scheduled":
		return begun
	case "Succeeded", "Success", "Healthy", "Accepted", "Synced", "Synchronized", "Valid", "Validated", "Reconciled", "ReconcileSuccess",
		"ReconcileSucceeded", "ResolvedRefs", "Applied", "Attached", "Configured", "SuccessfullyReconciled":
		return verdict
	case "Failed", "Failure", "Failing", "Degraded", "Error", "Errored", "Stalled", "Unhealthy", "Invalid", "Conflicted", "Misconfigured":
		return failure
	case "Paused", "Suspended", "Hibernated", "Stopped":
		return pause
	case "Reconciling", "Progressing", "Updating", "Upgrading", "Pending", "Creating", "Provisioning", "Deleting", "Terminating",
		"Scaling", "Initializing", "Restarting", "Migrating", "InProgress", "RollingOut":
		return work
	}
	return silent
}

// judged is the judgement of a list of conditions, or of another part of a status. None means that it says nothing.
type judged struct {
	result Result
	known  bool
}

// worse returns the worse of two judgements. A paused object makes no progress, so Suspended overrides Progressing, as
// it does in a HealthRule.
func (j judged) worse(other judged) judged {
	if !j.known || other.known && severity(other.result.Health) > severity(j.result.Health) {
		return other
	}
	return j
}

func severity(h appsv1alpha1.Health) int {
	switch h {
	case appsv1alpha1.HealthDegraded, appsv1alpha1.HealthMissing:
		return 4
	case appsv1alpha1.HealthUnknown:
		return 3
	case appsv1alpha1.HealthSuspended:
		return 2
	case appsv1alpha1.HealthProgressing:
		return 1
	case appsv1alpha1.HealthHealthy:
	}
	return 0
}

// judgeConditions judges a list of conditions by their polarity. Ready sums up: with it, other goals and verdicts are
// ignored, except for a verdict that the latest attempt failed. A condition about an older generation cannot make an
// object Healthy.
func judgeConditions(list []any, generation int64) judged {
	summed := isSummed(list)
	var worst judged
	for _, value := range list {
		if c, ok := value.(map[string]any); ok {
			worst = worst.worse(judgeCondition(c, summed, generation))
		}
	}
	return worst
}

// isSummed reports whether Ready is among some conditions.
func isSummed(list []any) bool {
	for _, value := range list {
		if c, ok := value.(map[string]any); ok && c["type"] == "Ready" && conditionStatus(c) != "" {
			return true
		}
	}
	return false
}

// firstStep returns the type of a condition that marks a completed first step; empty if there is none.
func firstStep(list []any) string {
	for _, value := range list {
		c, _ := value.(map[string]any)
		if name := fields(c).text("type"); classifyType(name) == begun && conditionStatus(c) == statusTrue {
			return name
		}
	}
	return ""
}

// judgeCondition judges one condition.
func judgeCondition(c fields, summed bool, generation int64) judged {
	name, state := c.text("type"), conditionStatus(c)
	kind := classifyType(name)
	switch {
	case state == "":
		return judged{}
	case kind == silent:
		return judgePart(name, state, c, summed)
	case kind == failure || kind == pause || kind == work:
		return judgeAlarm(kind, name, state, c)
	case summed && name != "Ready" && (kind == goal || kind == begun || state != statusFalse):
		return judged{}
	case kind == begun && state == statusTrue:
		return judged{}
	}
	return judgeAim(kind, name, state, c, generation)
}

// judgePart judges a condition of an unknown type. Its type can name a part, such as DatabaseReady, and its reason can
// report a failed attempt. A healthy part does not make the whole Healthy. If there is Ready, no such condition counts.
func judgePart(name, state string, c fields, summed bool) judged {
	if summed || state == statusTrue {
		return judged{}
	}
	kind := silent
	for _, suffix := range [...]string{"Ready", "Available", "Healthy", "Synced"} {
		if part, is := strings.CutSuffix(name, suffix); is && !strings.HasSuffix(part, "Not") {
			kind = classifyType(suffix)
		}
	}
	reason := c.text("reason")
	switch {
	case kind != silent:
		return judgeAim(kind, name, state, c, 0)
	case state == statusFalse && saysFailed(reason) && !saysFailed(name) && !strings.HasPrefix(reason, "No"):
		return judged{degraded(reason, messageOr(c.text("message"), "The condition "+name+" is False")), true}
	}
	return judged{}
}

// judgeAlarm judges a condition that matters only while it is True.
func judgeAlarm(kind polarity, name, state string, c fields) judged {
	reason, message := c.text("reason"), c.text("message")
	switch {
	case state != statusTrue:
		return judged{}
	case kind == failure:
		return judged{degraded(reasonOr(reason, name), message), true}
	case kind == pause:
		return judged{suspended(reasonOr(reason, name), message), true}
	case reason == rolloutComplete:
		return judged{}
	}
	return judged{progressing(reasonOr(reason, notReadyOr(name)), message), true}
}

// judgeAim judges a condition that should be True.
func judgeAim(kind polarity, name, state string, c fields, generation int64) judged {
	reason, message := c.text("reason"), c.text("message")
	switch {
	case state == statusTrue:
		if isOlder(c, generation) {
			return judged{notLatest(), true}
		}
		return judged{healthy(), true}
	case state == statusFalse && (kind == verdict || saysFailed(reason)):
		return judged{degraded(reasonOr(reason, notTrue(name)), messageOr(message, "The condition "+name+" is False")), true}
	}
	return judged{progressing(reasonOr(reason, notTrue(name)), messageOr(message, unavailable(name))), true}
}

// rolloutComplete is the reason with which a condition Progressing stays True after a rollout, of Deployments and of
// kinds that imitate them.
const rolloutComplete = "NewReplicaSetAvailable"

func notReadyOr(name string) string {
	if name == "Reconciling" {
		return appsv1alpha1.ReasonNotReady
	}
	return name
}

// notTrue returns the reason for a condition that should be True and has no reason.
func notTrue(name string) string {
	if name == "Ready" || name == "Available" {
		return appsv1alpha1.ReasonNotReady
	}
	return "Not" + name
}

func unavailable(name string) string {
	switch name {
	case "Ready":
		return ""
	case "Available":
		return "It is not available"
	}
	return "The condition " + name + " is not True"
}

const (
	statusTrue    = "True"
	statusFalse   = "False"
	statusUnknown = "Unknown"
)

// conditionStatus returns the status of a condition in Kubernetes' spelling; empty if there is none. Some controllers
// write it in lower case or as a boolean.
func conditionStatus(c map[string]any) string {
	switch s := c["status"].(type) {
	case bool:
		if s {
			return statusTrue
		}
		return statusFalse
	case string:
		switch {
		case strings.EqualFold(s, statusTrue):
			return statusTrue
		case strings.EqualFold(s, statusFalse):
			return statusFalse
		case s != "":
			return statusUnknown
		}
	}
	return ""
}

// saysFailed reports whether a word in a reason such as "ReconcileFailed" or "CREATE_FAILED" means failure.
func saysFailed(reason string) bool {
	start := 0
	for i := 0; i <= len(reason); i++ {
		if i < len(reason) && !startsWord(reason, i) {
			continue
		}
		if isFailureWord(strings.Trim(reason[start:i], "_- ")) {
			return true
		}
		start = i
	}
	return false
}

// startsWord reports whether a word begins at a position: at a capital after a lower-case letter, or after a separator.
func startsWord(s string, i int) bool {
	if i == 0 {
		return false
	}
	before, c := s[i-1], s[i]
	upper := c >= 'A' && c <= 'Z'
	lowerNext := i+1 < len(s) && s[i+1] >= 'a' && s[i+1] <= 'z'
	return before == '_' || before == '-' || before == ' ' || upper && (before >= 'a' && before <= 'z' || lowerNext)
}

func isFailureWord(word string) bool {
	if len(word) < 4 || len(word) > 13 {
		return false
	}
	for _, failed := range [...]string{
		"failed", "failure", "failures", "fail", "fails", "error", "errors", "errored", "invalid", "denied", "forbidden", "unauthorized",
		"rejected", "timeout", "exceeded", "unsupported", "misconfigured", "conflict", "degraded", "unhealthy", "stalled", "cannot",
	} {
		if strings.EqualFold(word, failed) {
			return true
		}
	}
	return false
}
