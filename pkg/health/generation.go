// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package health

import (
	"maps"
)

// isLatest is whether a condition of an object is about its latest generation, as far as it says. A part of an object
// has no generation.
func (f fields) isLatest(c fields) bool {
	generation, known := integer(f.at("metadata", "generation"))
	return !known || !isOlder(c, generation)
}

// isObserved is whether a status is about the latest generation of its object, as far as it says which it is about: in
// status.observedGeneration or a field like it, as a number or written as a string; if that is missing, in the
// conditions, of the object or of what it belongs to. Of these the newest counts, as some controllers write those
// conditions only that have changed, and that of Ready.
func isObserved(object fields) bool {
	generation, known := integer(object.at("metadata", "generation"))
	if !known {
		return true
	}
	status := object.part("status")
	if seen, ok := seenGeneration(status); ok {
		return seen >= generation
	}
	newest := newestObserved(status["conditions"], generation)
	for _, list := range status.perParent() {
		newest = max(newest, newestObserved(list, generation))
	}
	return newest == 0 || newest >= generation
}

// seenGeneration is the generation that a status says that it is about; false if it says none. Besides the usual name
// these are those of the operators of Vault's secrets, of Open Cluster Management's policies and of some others.
func seenGeneration(status fields) (int64, bool) {
	for _, name := range [...]string{"observedGeneration", "lastObservedGeneration", "lastGeneration", "lastEvaluatedGeneration"} {
		if seen, ok := decimal(status[name]); ok {
			return seen, true
		}
	}
	return 0, false
}

// perParent are the lists of conditions that an object has for each of what it belongs to, as the routes and the
// policies of Gateway API have.
func (f fields) perParent() [][]any {
	var lists [][]any
	for _, name := range [...]string{"parents", "ancestors"} {
		list, _ := f[name].([]any)
		for _, value := range list {
			part, _ := value.(map[string]any)
			if conditions, ok := part["conditions"].([]any); ok {
				lists = append(lists, conditions)
			}
		}
	}
	return lists
}

// observes is whether none of the conditions of an object or a part is about an older generation.
func observes(part fields, generation int64) bool {
	for _, value := range part.conditions() {
		if c, ok := value.(map[string]any); ok && isOlder(c, generation) {
			return false
		}
	}
	return true
}

// isOlder is whether a condition says that it is about an older generation.
func isOlder(c fields, generation int64) bool {
	seen, says := decimal(c["observedGeneration"])
	return says && seen > 0 && seen < generation
}

// newestObserved is the latest generation that a list of conditions is about; that of Ready if there is one that is
// older than the object's; 0 if none says.
func newestObserved(conditions any, generation int64) int64 {
	list, _ := conditions.([]any)
	newest := int64(0)
	for _, value := range list {
		c, _ := value.(map[string]any)
		seen, ok := decimal(c["observedGeneration"])
		if ok && seen > 0 && seen < generation && c["type"] == "Ready" {
			return seen
		}
		newest = max(newest, seen)
	}
	return newest
}

// notLatest is for a status that is about an older generation.
func notLatest() Result {
	return progressing(ReasonNotObserved, "Its controller has not seen the latest change yet")
}

// observed finds out whether a status is about the latest change of an object. It returns the object in a form that
// kstatus can read: there are controllers (of Argo Rollouts, for one) that write status.observedGeneration as a string.
func observed(object fields) (fields, Result, bool) {
	status := object.part("status")
	raw, there := status["observedGeneration"]
	if raw == nil {
		if there {
			// kstatus takes null for a mistake. It is the same as nothing.
			status = maps.Clone(status)
			delete(status, "observedGeneration")
			object = object.with("status", map[string]any(status))
		}
		seen, says := seenGeneration(status)
		if generation, known := integer(object.at("metadata", "generation")); says && known && seen < generation {
			return object, notLatest(), true
		}
		return object, Result{}, false
	}
	seen, ok := decimal(raw)
	if !ok {
		return object, unknown(ReasonUnreadable, "status.observedGeneration is not a number"), true
	}
	if generation, ok := integer(object.at("metadata", "generation")); ok && generation != seen {
		return object, notLatest(), true
	}
	if _, plain := raw.(int64); !plain {
		object = object.with("status", map[string]any(status.with("observedGeneration", seen)))
	}
	return object, Result{}, false
}
