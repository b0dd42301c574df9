// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package health

import (
	"fmt"

	appsv1alpha1 "github.com/masthead-dev/masthead/apis/apps/v1alpha1"
)

// generic is how an object fares of whose kind nothing is known but what statuses look like in general. Each part of
// the status that can be understood is judged, and the worst counts. If there is none, the object is Unknown.
func generic(object fields) Result {
	status, readable := object.at("status").(map[string]any)
	if !readable {
		return unknown(ReasonUnreadable, "Its status cannot be read: it is not an object")
	}
	conditions, problem := conditionList(status["conditions"])
	if problem != "" {
		return unknown(ReasonUnreadable, "Its status cannot be read: "+problem)
	}
	generation, _ := integer(object.at("metadata", "generation"))
	worst := conditionsOf(conditions, generation).
		worse(perParent(status, generation)).
		worse(phaseJudged(status)).
		worse(flagJudged(status)).
		worse(failureJudged(status)).
		worse(replicasJudged(object, status))
	if !worst.known {
		return notHealthyYet(status, conditions)
	}
	if worst.result.Health == appsv1alpha1.HealthHealthy && !isSummed(conditions) && hasUnknownWord(status) {
		// The word can say anything about the whole, and no condition sums up.
		return notUnderstood(status)
	}
	if worst.result.Health != appsv1alpha1.HealthHealthy && worst.result.Message == "" {
		worst.result.Message = complaint(status)
	}
	return worst.result
}

// conditionList is the list of conditions; a problem if there is something else in its place.
func conditionList(value any) (list []any, problem string) {
	switch v := value.(type) {
	case nil:
		return nil, ""
	case []any:
		return v, ""
	}
	return nil, "its conditions are not a list"
}

// perParent judges the conditions that an object has for each of what it belongs to, as the routes and the policies of
// Gateway API have.
func perParent(status fields, generation int64) judged {
	var worst judged
	for _, conditions := range status.perParent() {
		worst = worst.worse(conditionsOf(conditions, generation))
	}
	return worst
}

// phaseJudged judges the word in which an object sums its state up. A word that is not known makes an object Unknown
// that would else be Healthy, unless its condition Ready says that it is.
func phaseJudged(status fields) judged {
	word := phaseOf(status)
	health, known := wordHealth(word)
	if !known {
		return judged{}
	}
	return judged{Result{Health: health, Reason: reasonUnless(health, word)}, true}
}

func hasUnknownWord(status fields) bool {
	word := phaseOf(status)
	_, known := wordHealth(word)
	return word != "" && !known
}

func reasonUnless(health appsv1alpha1.Health, word string) string {
	if health == appsv1alpha1.HealthHealthy {
		return ""
	}
	return word
}

// flagJudged judges a field ready or healthy that is true or false.
func flagJudged(status fields) judged {
	var worst judged
	for _, name := range [...]string{"ready", "healthy"} {
		if flag, is := status[name].(bool); is {
			if flag {
				worst = worst.worse(judged{healthy(), true})
			} else {
				worst = worst.worse(judged{progressing(ReasonNotReady, ""), true})
			}
		}
	}
	return worst
}

// failureJudged judges the fields in which Cluster API and many others tell of a failure.
func failureJudged(status fields) judged {
	reason := ""
	for _, name := range [...]string{"failureReason", "failureMessage", "error", "errorMessage"} {
		if text := status.text(name); text != "" {
			if name == "failureReason" {
				reason = text
			}
			return judged{degraded(reasonOr(reason, ReasonFailed), messageOr(status.text("failureMessage"), text)), true}
		}
	}
	return judged{}
}

// replicasJudged compares the replicas that are ready with those that are wanted. A count of zero is usually left out
// of a status, so that one that is missing beside the number of replicas is zero, unless Ready says that all is well.
func replicasJudged(object, status fields) judged {
	want, wanted := integer(object.at("spec", "replicas"))
	have, counted := integer(status["readyReplicas"])
	if !counted {
		have, counted = integer(status["availableReplicas"])
	}
	if _, reported := integer(status["replicas"]); reported && !counted {
		counted = want > 0 && statusOf(object.rawCondition("Ready")) != statusTrue
	}
	if !wanted || !counted {
		return judged{}
	}
	if have < want {
		return judged{progressing(ReasonFewerReady, fmt.Sprintf("Ready: %d/%d", have, want)), true}
	}
	return judged{healthy(), true}
}

// notHealthyYet is what becomes of a status in which nothing is judged. What has only taken its first steps is on its
// way.
func notHealthyYet(status fields, conditions []any) Result {
	if name := firstStep(conditions); name != "" && !hasUnknownWord(status) {
		return progressing(ReasonNotReady, "The condition "+name+" is True, and nothing says yet that the object is ready")
	}
	return notUnderstood(status)
}

// notUnderstood is what becomes of a status that says nothing in words that are known.
func notUnderstood(status fields) Result {
	if word := phaseOf(status); word != "" {
		return unknown(ReasonNotUnderstood, fmt.Sprintf("Masthead does not know what the phase %q means; a HealthRule can say", word))
	}
	return unknown(ReasonNotUnderstood, "Its status says nothing that Masthead understands; a HealthRule can say when it is healthy")
}
