// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package health

import (
	"fmt"

	appsv1alpha1 "github.com/masthead-dev/masthead/apis/apps/v1alpha1"
)

// generic returns the health of an object of an unknown kind, from common status conventions. Each part of the status
// that is understood is judged, and the worst wins. If there is none, the object is Unknown.
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
	worst := judgeConditions(conditions, generation).
		worse(perParent(status, generation)).
		worse(phaseJudged(status)).
		worse(flagJudged(status)).
		worse(failureJudged(status)).
		worse(replicasJudged(object, status))
	if !worst.known {
		return notHealthyYet(status, conditions)
	}
	if worst.result.Health == appsv1alpha1.HealthHealthy && !isSummed(conditions) && hasUnknownWord(status) {
		// The word can mean anything, and no condition sums up.
		return notUnderstood(status)
	}
	if worst.result.Health != appsv1alpha1.HealthHealthy && worst.result.Message == "" {
		worst.result.Message = complaint(status)
	}
	return worst.result
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

// phaseJudged judges the word that sums up an object's state. An unknown word makes an otherwise Healthy object
// Unknown, unless its condition Ready is True.
func phaseJudged(status fields) judged {
	word := findPhase(status)
	health, known := wordHealth(word)
	if !known {
		return judged{}
	}
	return judged{Result{Health: health, Reason: reasonUnless(health, word)}, true}
}

func hasUnknownWord(status fields) bool {
	word := findPhase(status)
	_, known := wordHealth(word)
	return word != "" && !known
}

func reasonUnless(health appsv1alpha1.Health, word string) string {
	if health == appsv1alpha1.HealthHealthy {
		return ""
	}
	return word
}

// flagJudged judges a boolean field ready or healthy.
func flagJudged(status fields) judged {
	var worst judged
	for _, name := range [...]string{"ready", "healthy"} {
		if flag, is := status[name].(bool); is {
			if flag {
				worst = worst.worse(judged{healthy(), true})
			} else {
				worst = worst.worse(judged{progressing(appsv1alpha1.ReasonNotReady, ""), true})
			}
		}
	}
	return worst
}

// failureJudged judges the failure fields of Cluster API and many others.
func failureJudged(status fields) judged {
	reason := ""
	for _, name := range [...]string{"failureReason", "failureMessage", "error", "errorMessage"} {
		if text := status.text(name); text != "" {
			if name == "failureReason" {
				reason = text
			}
			return judged{degraded(reasonOr(reason, appsv1alpha1.ReasonFailed), messageOr(status.text("failureMessage"), text)), true}
		}
	}
	return judged{}
}

// replicasJudged compares ready with desired replicas. Statuses usually omit a count of zero, so a missing count beside
// the number of replicas means zero, unless the condition Ready is True.
func replicasJudged(object, status fields) judged {
	want, wanted := integer(object.at("spec", "replicas"))
	have, counted := integer(status["readyReplicas"])
	if !counted {
		have, counted = integer(status["availableReplicas"])
	}
	if _, reported := integer(status["replicas"]); reported && !counted {
		counted = want > 0 && conditionStatus(object.rawCondition("Ready")) != statusTrue
	}
	if !wanted || !counted {
		return judged{}
	}
	if have < want {
		return judged{progressing(appsv1alpha1.ReasonFewerReady, fmt.Sprintf("Ready: %d/%d", have, want)), true}
	}
	return judged{healthy(), true}
}

// notHealthyYet returns the Result for a status in which nothing is judged. An object that has completed only its first
// step is Progressing.
func notHealthyYet(status fields, conditions []any) Result {
	if name := firstStep(conditions); name != "" && !hasUnknownWord(status) {
		return progressing(appsv1alpha1.ReasonNotReady, "The condition "+name+" is True, but nothing reports yet that the object is ready")
	}
	return notUnderstood(status)
}

// notUnderstood returns the Result for a status that says nothing that is understood.
func notUnderstood(status fields) Result {
	if word := findPhase(status); word != "" {
		return unknown(appsv1alpha1.ReasonNotUnderstood, fmt.Sprintf("Masthead does not know what the phase %q means; a HealthRule can define it", word))
	}
	return unknown(appsv1alpha1.ReasonNotUnderstood, "Its status has nothing that Masthead understands; a HealthRule can define when it is healthy")
}
