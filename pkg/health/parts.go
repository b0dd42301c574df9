// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package health

import (
	"fmt"
	"slices"
	"strings"

	appsv1alpha1 "github.com/masthead-dev/masthead/apis/apps/v1alpha1"
)

// parts searches a status for parts that are not well. It is bounded, as objects can have any size. A part makes no
// object Healthy, and only its explicit words count beside a Ready that is True.
type parts struct {
	spec    fields
	summed  bool
	visited int
	worst   judged
}

func partsJudged(object, status fields, summed bool) judged {
	p := parts{spec: object.part("spec"), summed: summed}
	p.visit(status, 0)
	return p.worst
}

func (p *parts) visit(value any, depth int) {
	if p.visited++; p.visited > maxValues || depth > maxDepth {
		return
	}
	switch v := value.(type) {
	case []any:
		for _, entry := range v {
			p.visit(entry, depth+1)
		}
	case fields:
		p.visitObject(v, depth)
	case map[string]any:
		p.visitObject(v, depth)
	}
}

func (p *parts) visitObject(part fields, depth int) {
	var inner []string
	for name, value := range part {
		switch v := value.(type) {
		case string:
			p.weigh(p.word(name, v, depth))
			p.weigh(notCurrent(part, name))
			p.weigh(p.fraction(name, v))
		case bool:
			p.weigh(denied(part, name, v))
		case int64:
			p.weigh(p.fewerReady(part, name, v, depth))
		case map[string]any, []any:
			if name == "proposed" {
				p.weigh(notActive(part))
			}
			if !isElsewhere(name) {
				inner = append(inner, name)
			}
		}
	}
	if depth > 0 && !p.summed {
		p.weigh(failureJudged(part))
		list, _ := part["conditions"].([]any)
		p.weigh(unlessHealthy(judgeConditions(list, 0)))
	}
	// Which parts are searched before the bound is reached must not vary.
	slices.Sort(inner)
	for _, name := range inner {
		p.visit(part[name], depth+1)
	}
}

// denied judges a field such as healthy that is false.
func denied(part fields, name string, yes bool) judged {
	switch name {
	case "healthy", "pass", "passed", "success", "succeeded", "valid", "applied":
		if !yes {
			return judged{degraded("Not"+strings.ToUpper(name[:1])+name[1:], part.text("message")), true}
		}
	}
	return judged{}
}

// weigh keeps the worst judgement, and of equally bad ones always the same, in any order of fields.
func (p *parts) weigh(j judged) {
	switch worse := severity(j.result.Health) - severity(p.worst.result.Health); {
	case !j.known || worse < 0:
	case worse > 0, !p.worst.known, j.result.Reason < p.worst.result.Reason,
		j.result.Reason == p.worst.result.Reason && j.result.Message < p.worst.result.Message:
		p.worst = j
	}
}

// word judges a field that has a word for a state, by its name: state, jobStatus, currentPhase.
func (p *parts) word(name, value string, depth int) judged {
	first, is := strings.CutSuffix(name, nameOfState(name))
	if !is || first == name || first == "" && depth == 0 || p.summed && isElsewhere(name) {
		return judged{}
	}
	health, known := wordHealth(value)
	if !known || health == appsv1alpha1.HealthSuspended && depth > 0 {
		return judged{}
	}
	return unlessHealthy(judged{Result{Health: health, Reason: stateReason(value, name)}, true})
}

// nameOfState returns the end of a name that says that the field has a word for a state; empty if there is none.
func nameOfState(name string) string {
	for _, end := range [...]string{"phase", "Phase", "state", "State", "status", "Status", "health", "Health", "compliant"} {
		if strings.HasSuffix(name, end) {
			return end
		}
	}
	return ""
}

func unlessHealthy(j judged) judged {
	if j.result.Health == appsv1alpha1.HealthHealthy {
		return judged{}
	}
	return j
}

// fewerReady compares a count such as readyNodes with desiredNodes, expectedNodes or nodes beside it, or, if it is
// about the object, with nodes of the spec; a count named ready with the size.
func (p *parts) fewerReady(part fields, name string, have int64, depth int) judged {
	what, is := strings.CutPrefix(name, "ready")
	if !is {
		return judged{}
	}
	totals := [...]string{"size", "total", "desired", "replicas"}
	if what != "" {
		plain := strings.ToLower(what[:1]) + what[1:]
		totals = [...]string{"desired" + what, "expected" + what, "total" + what, plain}
	}
	for _, total := range totals {
		want, ok := integer(part[total])
		if !ok && depth == 0 {
			want, ok = integer(p.spec[total])
		}
		if ok && have < want {
			return judged{progressing(appsv1alpha1.ReasonFewerReady, fmt.Sprintf("Ready: %d/%d", have, want)), true}
		}
	}
	return judged{}
}

// fraction judges a text such as "2/3" in a field about what is ready.
func (p *parts) fraction(name, text string) judged {
	have, want, is := fraction(text)
	if !is || have >= want || p.summed {
		return judged{}
	}
	name = strings.ToLower(name)
	for _, word := range [...]string{"ready", "available", "running", "healthy", "replicas", "progress"} {
		if strings.Contains(name, word) {
			return judged{progressing(appsv1alpha1.ReasonFewerReady, fmt.Sprintf("Ready: %d/%d", have, want)), true}
		}
	}
	return judged{}
}

// notCurrent compares what is with what should be, where a part has both by their names: currentVersion and
// desiredVersion, currentRevision and updateRevision. Numbers are left out: those of autoscalers differ at rest.
func notCurrent(part fields, name string) judged {
	what, is := strings.CutPrefix(name, "current")
	if !is || what == "" || strings.HasSuffix(what, "Time") || strings.HasSuffix(what, "Timestamp") {
		return judged{}
	}
	for _, prefix := range [...]string{"desired", "target", "update"} {
		if want := part.text(prefix + what); want != "" && want != part.text(name) {
			return judged{progressing(appsv1alpha1.ReasonNotReady, fmt.Sprintf("Its %s%s is not yet its %s", prefix, what, name)), true}
		}
	}
	return judged{}
}

// notActive compares the revisions of what a part proposes with those that are active.
func notActive(part fields) judged {
	active, is := part["active"].(map[string]any)
	if is && !sameRevisions(active, part.part("proposed"), 0) {
		return judged{progressing(appsv1alpha1.ReasonNotReady, "What is proposed is not active yet"), true}
	}
	return judged{}
}

func sameRevisions(a, b fields, depth int) bool {
	for name, value := range b {
		inner, _ := value.(map[string]any)
		if inner != nil && depth < maxDepth && !sameRevisions(a.part(name), inner, depth+1) {
			return false
		}
	}
	for _, name := range [...]string{"sha", "revision", "version", "hash", "digest"} {
		if a.text(name) != b.text(name) {
			return false
		}
	}
	return true
}

// isElsewhere reports whether a field is about the past, about what is wanted, or about what its own conditions sum up,
// by the words of its name.
func isElsewhere(name string) bool {
	first := true
	for word := range wordsIn(name) {
		switch strings.ToLower(word) {
		case "history", "histories", "transitions", "timestamps":
			return true
		case "conditions", "last", "previous", "past", "old", "events", "attempts", "retries", "deprecated", "v1beta1", "v1beta2", "parents",
			"ancestors", "spec", "template", "config", "manifest", "labels", "annotations", "selector", "at":
			if first {
				return true
			}
		}
		first = false
	}
	return false
}
