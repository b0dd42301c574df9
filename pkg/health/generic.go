// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package health

import (
	"fmt"
	"strconv"
	"strings"

	appsv1alpha1 "github.com/masthead-dev/masthead/apis/apps/v1alpha1"
)

// generic returns the health of an object of an unknown kind, from common status conventions. Each part of the status
// that is understood is judged, and the worst wins. If there is none, the object is Unknown; so it is if all that is
// understood is Healthy, and something that is not understood is not True.
func generic(object fields) Result {
	status, readable := object.at("status").(map[string]any)
	if !readable {
		return unknown(appsv1alpha1.ReasonUnreadable, "Its status cannot be read: it is not an object")
	}
	conditions, problem := conditionList(status["conditions"])
	if problem != "" {
		return unknown(appsv1alpha1.ReasonUnreadable, "Its status cannot be read: "+problem)
	}
	generation, _ := integer(object.at("metadata", "generation"))
	summed := isSummed(conditions)
	worst := judgeConditions(conditions, generation).
		worse(perParent(status, generation)).
		worse(phaseJudged(object, status)).
		worse(flagJudged(status)).
		worse(failureJudged(status)).
		worse(replicasJudged(object, status)).
		worse(pauseJudged(object)).
		worse(partsJudged(object, status, summed))
	if !worst.known {
		return notHealthyYet(status, conditions)
	}
	if worst.result.Health == appsv1alpha1.HealthHealthy && !summed {
		if result, known := doubted(status, conditions); known {
			return result
		}
	}
	if worst.result.Health != appsv1alpha1.HealthHealthy && worst.result.Message == "" {
		worst.result.Message = complaint(status)
	}
	return worst.result
}

// doubted returns the Result for an object that seems Healthy, but whose status has something that is not understood.
// Ready sums up; where it is True, nothing is in doubt.
func doubted(status fields, conditions []any) (Result, bool) {
	if unknownWord(status) != "" {
		return notUnderstood(status), true
	}
	for _, list := range append(status.perParent(), conditions) {
		if c := unclear(list); c != nil {
			name := c.text("type")
			return unknown(reasonOr(c.text("reason"), appsv1alpha1.ReasonNotUnderstood),
				fmt.Sprintf("Masthead does not know what the condition %q means, which is not True; a HealthRule can define it", name)), true
		}
	}
	for _, list := range status.perParent() {
		if !judgeConditions(list, 0).known {
			return notUnderstood(status), true
		}
	}
	if onlySynced(conditions) {
		// Crossplane's contract: Ready follows.
		return progressing(appsv1alpha1.ReasonNotReady, "It is synced, but nothing reports yet that it is ready"), true
	}
	return Result{}, false
}

// onlySynced reports whether the condition Synced of Crossplane's contract is all that there is.
func onlySynced(conditions []any) bool {
	if len(conditions) != 1 {
		return false
	}
	c, _ := conditions[0].(map[string]any)
	return fields(c).text("type") == "Synced" && fields(c).text("reason") == "ReconcileSuccess"
}

// conditionList returns the list of conditions; a problem if the field holds something else.
func conditionList(value any) (list []any, problem string) {
	switch v := value.(type) {
	case nil:
		return nil, ""
	case []any:
		return v, ""
	}
	return nil, "its conditions are not a list"
}

// perParent judges the conditions that an object has for each parent, as Gateway API routes and policies do.
func perParent(status fields, generation int64) judged {
	var worst judged
	for _, conditions := range status.perParent() {
		worst = worst.worse(judgeConditions(conditions, generation))
	}
	return worst
}

// phaseJudged judges the words that sum up an object's state. While something that comes to an end, such as a Job,
// runs, it is on its way.
func phaseJudged(object, status fields) judged {
	var worst judged
	for _, name := range phaseNames() {
		word := phaseWord(status, name)
		health, known := wordHealth(word)
		if !known {
			continue
		}
		if health == appsv1alpha1.HealthHealthy && isRunning(word) && comesToAnEnd(object.text("kind")) {
			health = appsv1alpha1.HealthProgressing
		}
		worst = worst.worse(judged{Result{Health: health, Reason: reasonUnless(health, stateReason(word, name))}, true})
	}
	return worst
}

func isRunning(word string) bool {
	return strings.EqualFold(word, "Running") || strings.EqualFold(word, "Active")
}

// comesToAnEnd reports whether the objects of a kind end by themselves, by the last word of its name.
func comesToAnEnd(kind string) bool {
	before, last := lastWord(kind)
	switch last {
	case "Job", "Run", "Task", "Workflow", "Backup", "Restore", "Experiment", "Analysis", "Migration", "Build", "Test", "Execution":
		return before != "Cron" && before != "Scaled" && before != "Scheduled"
	}
	return false
}

// unknownWord returns a word that sums up an object's state and is not understood; empty if there is none.
func unknownWord(status fields) string {
	for _, name := range phaseNames() {
		word := phaseWord(status, name)
		if _, known := wordHealth(word); word != "" && !known {
			return word
		}
	}
	return ""
}

func reasonUnless(health appsv1alpha1.Health, word string) string {
	if health == appsv1alpha1.HealthHealthy {
		return ""
	}
	return word
}

// flagJudged judges fields such as ready, which are true, or "2/3".
func flagJudged(status fields) judged {
	var worst judged
	for _, name := range [...]string{"ready", "healthy", "readyToUse"} {
		yes, message, is := flag(status[name])
		switch {
		case is && yes:
			worst = worst.worse(judged{healthy(), true})
		case is && name == "healthy":
			worst = worst.worse(judged{degraded(notTrue("Healthy"), message), true})
		case is:
			worst = worst.worse(judged{progressing(appsv1alpha1.ReasonNotReady, message), true})
		}
	}
	return worst
}

// flag reads true or false, also as text, or a fraction such as "2/3".
func flag(value any) (yes bool, message string, is bool) {
	switch v := value.(type) {
	case bool:
		return v, "", true
	case string:
		if strings.EqualFold(v, statusTrue) || strings.EqualFold(v, statusFalse) {
			return strings.EqualFold(v, statusTrue), "", true
		}
		if have, want, is := fraction(v); is {
			return have >= want, fmt.Sprintf("Ready: %d/%d", have, want), true
		}
	}
	return false, "", false
}

func fraction(text string) (have, want int64, is bool) {
	left, right, cut := strings.Cut(text, "/")
	if !cut {
		return 0, 0, false
	}
	have, err1 := strconv.ParseInt(strings.TrimSpace(left), 10, 64)
	want, err2 := strconv.ParseInt(strings.TrimSpace(right), 10, 64)
	return have, want, err1 == nil && err2 == nil
}

// failureJudged judges the failure fields of Cluster API and many others.
func failureJudged(status fields) judged {
	reason := ""
	for _, name := range [...]string{"failureReason", "failureMessage", "error", "errorMessage"} {
		text, _ := status[name].(string)
		if part, is := status[name].(map[string]any); is {
			text = fields(part).text("message")
		}
		if text == "" {
			continue
		}
		if name == "failureReason" {
			reason = text
		}
		return judged{degraded(reasonOr(reason, appsv1alpha1.ReasonFailed), messageOr(status.text("failureMessage"), text)), true}
	}
	return judged{}
}

// pauseJudged judges what the owner has written: the spec says that the object is paused, or an annotation of its
// controller such as crossplane.io/paused.
func pauseJudged(object fields) judged {
	spec := object.part("spec")
	for _, name := range [...]string{"paused", "pause", "suspend", "suspended"} {
		if yes, _ := spec[name].(bool); yes {
			return judged{suspended(appsv1alpha1.ReasonPaused, "It is paused by spec."+name), true}
		}
	}
	for name, value := range object.part("metadata", "annotations") {
		if text, is := value.(string); is && pauses(name, text, object.text("apiVersion")) {
			return judged{suspended(appsv1alpha1.ReasonPaused, "It is paused by an annotation"), true}
		}
	}
	return judged{}
}

// pauses reports whether an annotation pauses an object: crossplane.io/paused, strimzi.io/pause-reconciliation,
// cnpg.io/reconciliationLoop. That something is not reconciled is said to its own controller only in its own domain;
// GitOps tools have such annotations for what they apply.
func pauses(name, value, apiVersion string) bool {
	domain, what, _ := strings.Cut(name, "/")
	group, _, _ := strings.Cut(apiVersion, "/")
	switch value {
	case "true", "on", "":
		return strings.HasPrefix(what, "pause-") || what == "paused" || what == "suspended" || what == "hibernation"
	case "disabled", "false", "off":
		return strings.HasPrefix(what, "reconcil") && strings.HasSuffix("."+group, "."+domain)
	}
	return false
}

// replicasJudged compares the replicas that are ready, available and of the latest revision with those that the spec
// wants, or, where it counts otherwise, the status. Statuses usually omit a count of zero, so a missing count of the
// ready ones beside the number of replicas means zero, unless the condition Ready is True.
func replicasJudged(object, status fields) judged {
	total, reported := integer(status["replicas"])
	want, wanted := integer(object.at("spec", "replicas"))
	if !wanted {
		want, wanted = total, reported
	}
	if !wanted {
		return judged{}
	}
	have, counted := integer(status["readyReplicas"])
	available, isAvailable := integer(status["availableReplicas"])
	if !counted && !isAvailable {
		counted = reported && want > 0 && !isSummed(object.conditions())
	}
	if isAvailable && (!counted || available < have) {
		have, counted = available, true
	}
	updated, isUpdated := integer(status["updatedReplicas"])
	switch {
	case counted && have < want:
		return judged{progressing(appsv1alpha1.ReasonFewerReady, fmt.Sprintf("Ready: %d/%d", have, want)), true}
	case isUpdated && updated < want:
		return judged{progressing(appsv1alpha1.ReasonFewerReady, fmt.Sprintf("Updated: %d/%d", updated, want)), true}
	case counted:
		return judged{healthy(), true}
	}
	return judged{}
}

// notHealthyYet returns the Result for a status in which nothing is judged. An object that has completed only its first
// step is Progressing.
func notHealthyYet(status fields, conditions []any) Result {
	if name := firstStep(conditions); name != "" && unknownWord(status) == "" {
		return progressing(appsv1alpha1.ReasonNotReady, "The condition "+name+" is True, but nothing reports yet that the object is ready")
	}
	return notUnderstood(status)
}

// notUnderstood returns the Result for a status that says nothing that is understood.
func notUnderstood(status fields) Result {
	if word := unknownWord(status); word != "" {
		return unknown(appsv1alpha1.ReasonNotUnderstood, fmt.Sprintf("Masthead does not know what the phase %q means; a HealthRule can define it", word))
	}
	return unknown(appsv1alpha1.ReasonNotUnderstood, "Its status has nothing that Masthead understands; a HealthRule can define when it is healthy")
}
