// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package health

import (
	"strings"

	appsv1alpha1 "github.com/masthead-dev/masthead/apis/apps/v1alpha1"
	commonv1alpha1 "github.com/masthead-dev/masthead/apis/common/v1alpha1"
)

// polarity says what True means for a type of condition. docs/health.md has the table for users.
type polarity int

const (
	// silent conditions are of types that are not understood. One that is not True can mean anything.
	silent polarity = iota

	// goal: True is desired; False means the controller is working towards it.
	goal

	// verdict: True is desired; False means an attempt failed.
	verdict

	// proof: False means that something failed, also beside Ready; True means nothing.
	proof

	// failure: True means failure; False means nothing.
	failure

	// pause: True means the owner has paused the object; False means nothing.
	pause

	// work: True means the controller is working; False means nothing.
	work

	// begun: True means a first step is done and others follow, so it does not make an object Healthy.
	begun
)

// classifyType returns the polarity of a type of condition, regardless of the kind. A type that is not known has that
// of its last word, and then it is only about a part: DatabaseReady, EtcdHealthy, ReleaseFailed. A domain in front of
// it, case and separators are ignored.
func classifyType(conditionType string) (p polarity, part bool) {
	name := conditionType[strings.LastIndexByte(conditionType, '/')+1:]
	if p := exactType(name); p != silent {
		return p, false
	}
	before, last := lastWord(name)
	p = exactType(last)
	switch {
	case isNegation(before):
		return negated(p, last, name), true
	case before == "" || p == silent || p == begun:
		// A last word that is not known says nothing about the words before it.
		return failureOrSilent(name), true
	}
	return p, true
}

// negated returns the polarity of a type whose last word has a "not" before it.
func negated(p polarity, last, name string) polarity {
	switch {
	case p == goal || p == verdict || p == begun:
		return failure
	case p == failure || isFailureWord(last):
		return verdict
	case p != silent:
		return silent
	}
	return failureOrSilent(name)
}

func failureOrSilent(name string) polarity {
	if saysFailed(name) || saysMissing(name) {
		return failure
	}
	return silent
}

func exactType(name string) polarity {
	f := fold(name)
	switch string(f.bytes()) {
	case "ready", "available", "programmed", "established", "bound", "provisioned", "deployed", "installed", "running", "active",
		"complete", "completed", "issued", "connected", "online":
		return goal
	case "initialized", "released", "created", "scheduled":
		return begun
	case "succeeded", "success", "successful", "healthy", "accepted", "synced", "synchronized", "valid", "validated", "reconciled",
		"reconcilesuccess", "reconcilesucceeded", "resolvedrefs", "applied", "attached", "configured", "successfullyreconciled":
		return verdict
	case "lastasyncoperation", "referencesresolved":
		return proof
	case "failed", "failure", "failing", "degraded", "error", "errored", "stalled", "unhealthy", "invalid", "conflicted", "misconfigured",
		"unreachable", "irreconcilable", "unavailable", "unready", "unsynced", "outofsync", "violated", "noncompliant":
		return failure
	case "paused", "suspended", "hibernated", "hibernating", "stopped":
		return pause
	case "reconciling", "progressing", "updating", "upgrading", "pending", "creating", "provisioning", "deleting", "terminating",
		"scaling", "initializing", "restarting", "migrating", "inprogress", "rollingout", "waiting", "remediating", "installing", "deploying",
		"disrupting", "draining":
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

// judgeConditions judges a list of conditions by their polarity. Ready sums up: while it is True, other goals, verdicts
// and parts are ignored, except for a verdict that the latest attempt failed. A condition about an older generation
// cannot make an object Healthy.
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

// isSummed reports whether Ready is True among some conditions.
func isSummed(list []any) bool {
	for _, value := range list {
		if c, ok := value.(map[string]any); ok && isReady(fields(c).text("type")) && conditionStatus(c) == statusTrue {
			return true
		}
	}
	return false
}

func isReady(conditionType string) bool { return strings.EqualFold(conditionType, "Ready") }

// firstStep returns the type of a condition that marks a completed first step; empty if there is none.
func firstStep(list []any) string {
	for _, value := range list {
		c, _ := value.(map[string]any)
		name := fields(c).text("type")
		if p, part := classifyType(name); p == begun && !part && conditionStatus(c) == statusTrue {
			return name
		}
	}
	return ""
}

// unclear returns a condition that is not True and not understood: it can mean anything, so that without a Ready that
// is True it is unknown whether the object is well.
func unclear(list []any) fields {
	for _, value := range list {
		c, _ := value.(map[string]any)
		state := conditionStatus(c)
		if p, _ := classifyType(fields(c).text("type")); p == silent && state != "" && state != statusTrue {
			return c
		}
	}
	return nil
}

// alarmed judges only those conditions of an object that report a failure. No rule of the library, and no check of a
// kind, is so complete that it outweighs one that it does not know.
func alarmed(object fields, known func(conditionType string) bool) judged {
	var worst judged
	for _, value := range object.conditions() {
		c, _ := value.(map[string]any)
		name, state := fields(c).text("type"), conditionStatus(c)
		switch p, _ := classifyType(name); {
		case p == proof:
			worst = worst.worse(judgeProof(name, state, c))
		case p == failure && state == statusTrue && !known(name):
			worst = worst.worse(judgeAlarm(p, name, state, c, true))
		}
	}
	return worst
}

// judgeCondition judges one condition.
func judgeCondition(c fields, summed bool, generation int64) judged {
	name, state, reason := c.text("type"), conditionStatus(c), c.text("reason")
	kind, part := classifyType(name)
	if kind == goal && strings.EqualFold(name, "Running") && strings.EqualFold(reason, name) {
		// In the Ansible SDK it says that the reconciliation is running.
		kind = work
	}
	switch {
	case state == "":
		return judged{}
	case isPause(reason) && isHeldUp(kind, state):
		// Crossplane's contract, which others have as well: what is paused says so in the reason.
		return judged{suspended(reason, c.text("message")), true}
	}
	switch kind {
	case failure, pause, work:
		return judgeAlarm(kind, name, state, c, summed)
	case proof:
		return judgeProof(name, state, c)
	case silent:
		return judgeSilent(name, state, c, summed)
	case goal, verdict, begun:
	}
	if saysNothing(kind, part, state, summed && !isReady(name)) {
		return judged{}
	}
	return judgeAim(kind, name, state, c, generation)
}

// saysNothing reports whether a condition that should be True does not count: Ready sums up, but for a verdict about
// the whole, and neither a part nor a first step makes the whole Healthy.
func saysNothing(kind polarity, part bool, state string, summed bool) bool {
	if state == statusTrue {
		return summed || part || kind == begun
	}
	return summed && (part || kind != verdict || state != statusFalse)
}

// isHeldUp reports whether a condition tells that something wanted is not there, or that something goes on: what a
// pause is the reason of.
func isHeldUp(kind polarity, state string) bool {
	switch kind {
	case failure, pause:
		return false
	case work, silent:
		return true
	case goal, verdict, proof, begun:
	}
	return state != statusTrue
}

// judgeSilent judges a condition of a type that is not understood by its reason.
func judgeSilent(name, state string, c fields, summed bool) judged {
	reason := c.text("reason")
	if !summed && state != statusUnknown && (saysFailed(reason) || state == statusFalse && saysMissing(reason)) {
		return judged{degraded(reason, messageOr(c.text("message"), "The condition "+name+" is "+state)), true}
	}
	return judged{}
}

// judgeProof judges a condition that counts beside everything else while it is False. References wait for what does not
// exist yet.
func judgeProof(name, state string, c fields) judged {
	if state != statusFalse {
		return judged{}
	}
	reason, message := reasonOr(c.text("reason"), notTrue(name)), messageOr(c.text("message"), "The condition "+name+" is False")
	switch reason {
	case commonv1alpha1.ReasonSourceNotFound, commonv1alpha1.ReasonFieldNotFound, commonv1alpha1.ReasonKindNotServed, commonv1alpha1.ReasonUnavailable,
		commonv1alpha1.ReasonNotReady:
		return judged{progressing(reason, message), true}
	}
	return judged{degraded(reason, message), true}
}

// judgeAlarm judges a condition that should not be True.
func judgeAlarm(kind polarity, name, state string, c fields, summed bool) judged {
	reason, message := c.text("reason"), c.text("message")
	switch {
	case kind == work && state == statusFalse && saysFailed(reason) && !summed:
		// The work has ended without success, as that of a Deployment at its deadline.
		return judged{degraded(reason, message), true}
	case state == statusUnknown && !summed && kind != pause:
		return judged{progressing(reasonOr(reason, name), messageOr(message, "The condition "+name+" is Unknown")), true}
	case state != statusTrue:
		return judged{}
	case kind == failure:
		return judged{degraded(reasonOr(reason, name), messageOr(message, "The condition "+name+" is True")), true}
	case kind == pause:
		return judged{suspended(reasonOr(reason, name), message), true}
	case isRolloutComplete(reason):
		return judged{}
	}
	return judged{progressing(reasonOr(reason, notReadyOr(name)), message), true}
}

// judgeAim judges a condition that should be True.
func judgeAim(kind polarity, name, state string, c fields, generation int64) judged {
	reason, message := c.text("reason"), c.text("message")
	health, known := exactHealth(reason)
	switch {
	case state == statusTrue && isOlder(c, generation):
		return judged{notLatest(), true}
	case state == statusTrue && kind == goal && !isReady(name) && saysFailed(reason):
		// A run can be complete because it has failed.
		return judged{degraded(reason, message), true}
	case state == statusTrue:
		return judged{healthy(), true}
	case saysFailed(reason), beginsWithFailure(message), c.text("severity") == "Error",
		state == statusFalse && kind == verdict && (!known || health != appsv1alpha1.HealthProgressing):
		return judged{degraded(reasonOr(reason, notTrue(name)), messageOr(message, "The condition "+name+" is False")), true}
	}
	return judged{progressing(reasonOr(reason, notTrue(name)), messageOr(message, unavailable(name))), true}
}

// isRolloutComplete reports whether a condition Progressing stays True after a rollout, as that of Deployments and of
// kinds that imitate them: its reason is NewReplicaSetAvailable or the like.
func isRolloutComplete(reason string) bool {
	before, last := lastWord(reason)
	return !isNegation(before) && (last == "Available" || last == "Complete" || last == "Completed")
}

func notReadyOr(name string) string {
	if name == "Reconciling" {
		return appsv1alpha1.ReasonNotReady
	}
	return name
}

// notTrue returns the reason for a condition that should be True and has no reason.
func notTrue(name string) string {
	if isReady(name) || name == "Available" {
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
