// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package health

import (
	"maps"

	appsv1alpha1 "github.com/masthead-dev/masthead/apis/apps/v1alpha1"
)

// isLatest reports whether a condition is about its object's latest generation, as far as it says. A part of an object
// has no generation.
func (f fields) isLatest(c fields) bool {
	generation, known := integer(f.at("metadata", "generation"))
	return !known || !isOlder(c, generation)
}

// isObserved reports whether a status is about the latest generation of its object, as far as it says: in
// status.observedGeneration or a similar field, as a number or a string; if that is missing, in the conditions of the
// object, or in those that it has for each parent. The newest of these counts, as some controllers update only changed
// conditions, but in each list that of Ready if it is older than the object's.
func isObserved(object fields) bool {
	generation, known := integer(object.at("metadata", "generation"))
	if !known {
		return true
	}
	status := object.part("status")
	if seen, ok := seenGeneration(status); ok {
		return seen >= generation || hasFailedLatest(status, generation)
	}
	newest := newestObserved(status["conditions"], generation)
	for _, list := range status.perParent() {
		newest = max(newest, newestObserved(list, generation))
	}
	return newest == 0 || newest >= generation
}

// hasFailedLatest reports whether Ready is False for the latest generation. Flux's controllers, and others, count a
// generation as observed only after a success.
func hasFailedLatest(status fields, generation int64) bool {
	list, _ := status["conditions"].([]any)
	for _, value := range list {
		c, _ := value.(map[string]any)
		if isReady(fields(c).text("type")) && conditionStatus(c) == statusFalse {
			seen, _ := decimal(c["observedGeneration"])
			return seen >= generation
		}
	}
	return false
}

// seenGeneration returns the generation that a status is about; false if it gives none. Besides the usual field name it
// knows those of Vault's secrets operators, Open Cluster Management's policies and some others.
func seenGeneration(status fields) (int64, bool) {
	for _, name := range [...]string{"observedGeneration", "lastObservedGeneration", "lastGeneration", "lastEvaluatedGeneration"} {
		if seen, ok := decimal(status[name]); ok {
			return seen, true
		}
	}
	return 0, false
}

// perParent returns the lists of conditions that an object has for each parent, as Gateway API routes and policies do.
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

// observes reports whether no condition of an object or a part is about an older generation.
func observes(part fields, generation int64) bool {
	for _, value := range part.conditions() {
		if c, ok := value.(map[string]any); ok && isOlder(c, generation) {
			return false
		}
	}
	return true
}

// isOlder reports whether a condition is about an older generation.
func isOlder(c fields, generation int64) bool {
	seen, says := decimal(c["observedGeneration"])
	return says && seen > 0 && seen < generation
}

// newestObserved returns the latest generation that a list of conditions is about; that of Ready if it is older than
// the object's; 0 if none says.
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
	return progressing(appsv1alpha1.ReasonNotObserved, "Its controller has not seen the latest change yet")
}

// observed determines whether a status is about the latest change of an object. It returns the object in a form that
// kstatus can read: some controllers (Argo Rollouts, for one) write status.observedGeneration as a string.
func observed(object fields) (fields, Result, bool) {
	status := object.part("status")
	raw, there := status["observedGeneration"]
	if raw == nil {
		if there {
			// kstatus rejects null. Here it means absent.
			status = maps.Clone(status)
			delete(status, "observedGeneration")
			object = object.with("status", map[string]any(status))
		}
		seen, says := seenGeneration(status)
		generation, known := integer(object.at("metadata", "generation"))
		if says && known && seen < generation && !hasFailedLatest(status, generation) {
			return object, notLatest(), true
		}
		return object, Result{}, false
	}
	seen, ok := decimal(raw)
	if !ok {
		return object, unknown(appsv1alpha1.ReasonUnreadable, "status.observedGeneration is not a number"), true
	}
	if generation, ok := integer(object.at("metadata", "generation")); ok && generation != seen && !hasFailedLatest(status, generation) {
		return object, notLatest(), true
	}
	if _, plain := raw.(int64); !plain {
		object = object.with("status", map[string]any(status.with("observedGeneration", seen)))
	}
	return object, Result{}, false
}
