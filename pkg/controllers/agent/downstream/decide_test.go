// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package downstream

import (
	"fmt"
	"iter"
	"maps"
	"reflect"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/internal/exhaustive"
	"github.com/masthead-dev/masthead/pkg/condition"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/index"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/ownership"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/plan"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/propagation"
	"github.com/masthead-dev/masthead/pkg/objects"
)

const (
	claimUID, hubUID = "claim-uid", "hub-uid"
	patience         = 2 * time.Second
)

// decidedAt is when everything is decided.
func decidedAt() time.Time { return time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC) }

// hubState is the claim's object in the hub.
type hubState struct {
	Exists, Young, Reported, Ready, Going bool
	object                                *unstructured.Unstructured
}

func hubStates() []hubState {
	out := []hubState{{}}
	for bits := range 1 << 4 {
		s := hubState{Exists: true, Young: bits&1 != 0, Reported: bits&2 != 0, Ready: bits&4 != 0, Going: bits&8 != 0}
		if s.Ready && !s.Reported {
			continue
		}
		s.object = &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"compositionRef": map[string]any{"name": "mysql"}}}}
		s.object.SetNamespace("bar")
		s.object.SetName("db")
		s.object.SetUID(hubUID)
		s.object.SetGeneration(7)
		s.object.SetCreationTimestamp(metav1.NewTime(decidedAt().Add(-time.Hour)))
		if s.Young {
			s.object.SetCreationTimestamp(metav1.NewTime(decidedAt().Add(-time.Second)))
		}
		if s.Going {
			s.object.SetDeletionTimestamp(new(metav1.NewTime(decidedAt())))
		}
		if s.Reported {
			ready := map[string]any{"type": "Ready", "status": "False", "observedGeneration": int64(7)}
			if s.Ready {
				ready["status"] = "True"
			}
			s.object.Object["status"] = map[string]any{"address": "a", "conditions": []any{ready}}
		}
		out = append(out, s)
	}
	return out
}

// newClaim returns a claim in its generation 3, without metadata of Masthead.
func newClaim() *unstructured.Unstructured {
	claim := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"size": int64(1)}}}
	claim.SetNamespace("foo")
	claim.SetName("db")
	claim.SetUID(claimUID)
	claim.SetGeneration(3)
	return claim
}

// problem returns a problem with a reason, or nil.
func problem(reason string) *condition.Error {
	if reason == "" {
		return nil
	}
	return &condition.Error{Reason: reason, Message: "It is " + reason, Unknown: reason == fleetv1alpha1.ReasonSyncFailing}
}

// report is what a claim shows, and what came of its steps.
type report struct {
	hubState
	Shown                               string // The reason of its condition.
	Edited, Paused, Vanished, Annotated bool   // Edited is since the condition.
	Skips, Keeps, Current, Altered      bool
	Problem                             string
	Pruned                              string // What the cluster did not keep: This, Other, or that of a Former claim.
	f                                   Facts
	decided, again                      Report // again is after the decided status was written.
}

func (s *report) String() string {
	return fmt.Sprintf("hub %+v, shows %q edited %t paused %t vanished %t annotated %t, skips %t keeps %t current %t altered %t problem %q "+
		"pruned %q: %+v", s.hubState, s.Shown, s.Edited, s.Paused, s.Vanished, s.Annotated, s.Skips, s.Keeps, s.Current, s.Altered, s.Problem,
		s.Pruned, s.decided)
}

// decide decides about the situation, and once more when its status is written.
func (s *report) decide() {
	claim := newClaim()
	annotations := map[string]string{}
	if s.Paused {
		annotations[fleetv1alpha1.PausedAnnotation] = fleetv1alpha1.PausedAnnotationTrue
	}
	if s.Annotated {
		annotations[fleetv1alpha1.ConflictAnnotation] = "w2/theirs"
	}
	claim.SetAnnotations(annotations)
	if s.Shown != "" {
		why := problem(s.Shown)
		if s.Shown == fleetv1alpha1.ReasonSynced {
			why = nil
		}
		c := propagation.Condition(claim, why)
		claim.Object["status"] = propagation.BuildStatus(claim, s.object, why == nil, c, decidedAt().Add(-time.Hour))
	}
	if s.Edited {
		claim.SetGeneration(4)
	}
	s.f = Facts{
		Facts: plan.Facts{Claim: claim, Vanished: s.Vanished}, Now: decidedAt(), Patience: patience,
		Outcome: Outcome{
			Plan:    plan.Plan{SkipReport: s.Skips, Problem: problem(s.Problem), Down: plan.Down{Object: s.object}, RequeueAfter: time.Minute},
			Current: s.Current, KeepCondition: s.Keeps,
		},
	}
	if s.Problem == fleetv1alpha1.ReasonConflict {
		s.f.Holder = "w2/theirs"
	}
	if s.Altered {
		s.f.Altered = "spec.size"
	}
	switch before := DecideReport(s.f); {
	case s.Pruned == "This" && before.Status != nil:
		s.f.Entry.Pruned = prunedStatus(claim, before.Condition.Reason, before.Status)
	case s.Pruned == "Other":
		s.f.Entry.Pruned = index.PrunedStatus{UID: claimUID, Reason: fleetv1alpha1.ReasonConflict, Written: "x"}
	case s.Pruned == "Former":
		s.f.Entry.Pruned = index.PrunedStatus{UID: "former", Reason: fleetv1alpha1.ReasonConflict, Written: "x"}
	}
	if s.decided = DecideReport(s.f); s.decided.Status != nil {
		then := s.f
		then.Claim, then.Now = claim.DeepCopy(), then.Now.Add(time.Minute)
		then.Claim.Object["status"] = runtime.DeepCopyJSON(s.decided.Status)
		s.again = DecideReport(then)
	}
}

func reports() iter.Seq[*report] {
	shown := []string{
		"", fleetv1alpha1.ReasonSynced, fleetv1alpha1.ReasonConflict, fleetv1alpha1.ReasonDeleting, fleetv1alpha1.ReasonSyncFailing,
	}
	problems := []string{
		"", fleetv1alpha1.ReasonConflict, fleetv1alpha1.ReasonDeleting, fleetv1alpha1.ReasonReconcilePaused, fleetv1alpha1.ReasonSyncFailing,
	}
	return func(yield func(*report) bool) {
		for _, hub := range hubStates() {
			for bits := range 1 << 8 {
				bit := func(n int) bool { return bits&(1<<n) != 0 }
				for _, reason := range shown {
					for _, problem := range problems {
						for _, pruned := range []string{"", "This", "Other", "Former"} {
							s := report{
								hubState: hub, Shown: reason, Problem: problem, Pruned: pruned, Edited: bit(0), Paused: bit(1), Vanished: bit(2),
								Annotated: bit(3), Skips: bit(4), Keeps: bit(5), Current: bit(6), Altered: bit(7),
							}
							switch {
							case hub.Ready, s.Keeps && problem != "", s.Edited && reason == "", s.Altered && !s.Current, s.Current && hub.object == nil:
								continue // It makes no difference, or does not occur.
							case (s.Vanished || s.Skips && !s.Keeps) && (s.Paused || s.Current || s.Edited || pruned != ""):
								continue // The same as without.
							}
							s.decide()
							if !yield(&s) {
								return
							}
						}
					}
				}
			}
		}
	}
}

// theirs returns the conditions of a status that Masthead does not write.
func theirs(status map[string]any) []any {
	conditions, _ := status["conditions"].([]any)
	return slices.DeleteFunc(slices.Clone(conditions), func(c any) bool { return propagation.IsOurCondition(c.(map[string]any)["type"]) })
}

func TestDecideReport(t *testing.T) {
	silent := func(s *report) bool { return s.Vanished || s.Skips && !s.Keeps }
	keeps := func(s *report) bool { return s.Keeps && !silent(s) }
	tells := func(s *report) bool { return !s.Keeps && !silent(s) }
	writes := func(s *report) bool { return s.decided.Status != nil }
	status := func(s *report) map[string]any { shown, _ := s.f.Claim.Object["status"].(map[string]any); return shown }
	entry := func(status map[string]any) map[string]any {
		return condition.Entry(&unstructured.Unstructured{Object: map[string]any{"status": status}}, fleetv1alpha1.ConditionAgentSynced)
	}
	exhaustive.Check(t, reports(), []exhaustive.Property[*report]{
		{
			Sentence: "Nothing is reported of a claim that is gone, or when an event will follow.",
			When:     silent, Holds: func(s *report) bool {
				d := s.decided
				return !writes(s) && !d.New && d.Annotated == nil && d.Event == "" && !d.AwaitsStatus && d.RequeueAfter == time.Minute
			},
		},
		{
			Sentence: "A kept condition is not changed, nor counted, nor annotated, nor an event.",
			When:     keeps, Holds: func(s *report) bool {
				d := s.decided
				return (!writes(s) || reflect.DeepEqual(entry(d.Status), entry(status(s)))) && !d.New && d.Annotated == nil && d.Event == ""
			},
		},
		{
			Sentence: "A claim without a condition gets none while it is unknown whether it is synchronised.",
			When:     func(s *report) bool { return keeps(s) && s.Shown == "" }, Holds: func(s *report) bool { return !writes(s) },
		},
		{
			Sentence: "Otherwise the condition says what the problem is, or that there is none.",
			When:     tells, Holds: func(s *report) bool {
				c, want := s.decided.Condition, metav1.ConditionFalse
				switch s.Problem {
				case "":
					return c.Status == metav1.ConditionTrue && c.Reason == fleetv1alpha1.ReasonSynced && s.decided.New
				case fleetv1alpha1.ReasonSyncFailing:
					want = metav1.ConditionUnknown
				}
				return c.Status == want && c.Reason == s.Problem && s.decided.New
			},
		},
		{
			Sentence: "A field that the hub alters is named only where there is no problem.",
			When:     tells, Holds: func(s *report) bool {
				plain := propagation.Condition(s.f.Claim, s.f.Problem)
				return (s.decided.Condition.Message != plain.Message) == (s.Altered && s.Problem == "")
			},
		},
		{
			Sentence: "The written status has the decided condition.",
			When:     writes, Holds: func(s *report) bool { return entry(s.decided.Status)["reason"] == s.decided.Condition.Reason },
		},
		{
			Sentence: "The annotation names the holder of the claim's name, and only while it is the problem.",
			When:     func(s *report) bool { return tells(s) && !s.Paused }, Holds: func(s *report) bool {
				claim, stays := s.f.Claim, s.Annotated == (s.f.Holder != "")
				if s.decided.Annotated != nil {
					claim = s.decided.Annotated
				}
				return claim.GetAnnotations()[fleetv1alpha1.ConflictAnnotation] == s.f.Holder && (s.decided.Annotated == nil) == stays
			},
		},
		{
			Sentence: "The annotation of a paused claim stays.",
			When:     func(s *report) bool { return s.Paused }, Holds: func(s *report) bool { return s.decided.Annotated == nil },
		},
		{
			Sentence: "Nothing is written when nothing differs, and nothing is written twice.",
			When:     writes, Holds: func(s *report) bool {
				return propagation.StatusDiffers(s.f.Claim, s.decided.Status) && s.again.Status == nil && s.again.Event == ""
			},
		},
		{
			Sentence: "What the cluster did not keep is not written again.",
			When:     func(s *report) bool { return s.Pruned == "This" },
			Holds:    func(s *report) bool { return !writes(s) && s.decided.Event == "" },
		},
		{
			Sentence: "An event comes with a status, and only for a reason that was not reported of this claim.",
			When:     func(s *report) bool { return s.decided.Event != "" }, Holds: func(s *report) bool {
				last := s.Shown
				if last == "" && s.Pruned == "Other" {
					last = fleetv1alpha1.ReasonConflict
				}
				return writes(s) && last != s.decided.Condition.Reason
			},
		},
		{
			Sentence: "A new problem is an event, unless it is the deletion that a user wants, and its end is one, too.",
			When: func(s *report) bool {
				return tells(s) && writes(s) && s.Problem != fleetv1alpha1.ReasonDeleting && s.Shown != "" && s.Shown != s.decided.Condition.Reason
			},
			Holds: func(s *report) bool {
				warns := s.Problem != "" && s.Problem != fleetv1alpha1.ReasonReconcilePaused
				return s.decided.Event == "Warning" == warns && s.decided.Event != ""
			},
		},
		{
			Sentence: "The first success is no event, nor is a deletion.",
			When: func(s *report) bool {
				return s.Problem == fleetv1alpha1.ReasonDeleting || s.Problem == "" && s.Shown == "" && s.Pruned != "Other"
			},
			Holds: func(s *report) bool { return s.decided.Event == "" },
		},
		{
			Sentence: "Without a known object in the hub, no status is removed.",
			When:     func(s *report) bool { return writes(s) && !s.Exists }, Holds: func(s *report) bool {
				before, after := maps.Clone(status(s)), maps.Clone(s.decided.Status)
				same := reflect.DeepEqual(theirs(before), theirs(after))
				for _, m := range []map[string]any{before, after} {
					delete(m, "conditions")
				}
				return same && reflect.DeepEqual(before, after) || before == nil && len(after) == 0
			},
		},
		{
			Sentence: "The hub's status is shown whole beside any problem.",
			When:     func(s *report) bool { return writes(s) && s.Reported }, Holds: func(s *report) bool {
				return s.decided.Status["address"] == "a" && len(theirs(s.decided.Status)) == 1
			},
		},
		{
			Sentence: "What the hub has observed of its object counts for the claim only if the object matches it.",
			When:     func(s *report) bool { return writes(s) && s.Reported }, Holds: func(s *report) bool {
				matched := s.Current || s.Keeps && s.Shown == fleetv1alpha1.ReasonSynced && !s.Edited
				return (theirs(s.decided.Status)[0].(map[string]any)["observedGeneration"] == s.f.Claim.GetGeneration()) == matched
			},
		},
		{
			Sentence: "Only the first status waits, for that of a new object, and not long. A problem does not wait.",
			Holds: func(s *report) bool {
				waits := tells(s) && s.Problem == "" && s.Shown == "" && s.Young && !s.Reported
				d := s.decided
				if !waits {
					return !d.AwaitsStatus && d.RequeueAfter == time.Minute
				}
				return d.AwaitsStatus && !writes(s) && d.RequeueAfter > 0 && d.RequeueAfter <= patience
			},
		},
		{
			Sentence: "The same facts make the same decision, and are not changed.",
			Holds: func(s *report) bool {
				before := objects.Digest(s.f.Claim.Object)
				return reflect.DeepEqual(DecideReport(s.f), s.decided) && objects.Digest(s.f.Claim.Object) == before
			},
		},
	})
}

// flow is what a claim has of the hub's object beside its status.
type flow struct {
	hubState
	Reported, CrossplaneReported, Skips, Keeps, Secrets bool
	Record                                              string // None, Place, Elsewhere, Object or Another.
	Late                                                string // None, Shown, Stale, Users or InVain.
	InVain                                              bool   // The cluster did not keep the record.
	f                                                   Facts
	decided                                             Down
}

func (s *flow) String() string {
	return fmt.Sprintf("hub %+v, reported %t by Crossplane %t, skips %t keeps %t secrets %t, record %q late %q in vain %t: %+v",
		s.hubState, s.Reported, s.CrossplaneReported, s.Skips, s.Keeps, s.Secrets, s.Record, s.Late, s.InVain, s.decided)
}

func (s *flow) decide() {
	claim := newClaim()
	conditions := []any{}
	if s.Reported {
		conditions = append(conditions, map[string]any{"type": fleetv1alpha1.ConditionAgentSynced, "status": "True"})
	}
	if s.CrossplaneReported {
		conditions = append(conditions, map[string]any{"type": "Ready", "status": "True"})
	}
	claim.Object["status"] = map[string]any{"conditions": conditions}
	records := map[string]string{"Place": "bar//", "Elsewhere": "old//", "Object": "bar/" + hubUID + "/", "Another": "bar/another/"}
	if record, ok := records[s.Record]; ok {
		ownership.SetRecord(claim, record+claimUID)
	}
	shown := map[string]string{"Shown": "mysql", "Stale": "postgres", "Users": "postgres"}
	if name, ok := shown[s.Late]; ok {
		_ = unstructured.SetNestedField(claim.Object, name, "spec", "compositionRef", "name")
	}
	if s.Late == "Shown" || s.Late == "Stale" {
		_ = unstructured.SetNestedSlice(claim.Object, []any{map[string]any{
			"manager": fleetv1alpha1.LateInitFieldManager, "operation": "Apply",
			"fieldsV1": map[string]any{"f:spec": map[string]any{"f:compositionRef": map[string]any{"f:name": map[string]any{}}}},
		}}, "metadata", "managedFields")
	}
	s.f = Facts{
		Facts: plan.Facts{Claim: claim}, Now: decidedAt(), Patience: patience, Outcome: Outcome{
			Plan:          plan.Plan{SkipReport: s.Skips, Down: plan.Down{Object: s.object, WithSecrets: s.Secrets}},
			KeepCondition: s.Keeps,
		},
	}
	if s.object != nil && s.InVain {
		s.f.Entry.Recorded = ownership.RecordFor(claim, s.object)
	}
	if s.object != nil && s.Late == "InVain" {
		late, _ := propagation.LateSpec(claim, s.object, "")
		s.f.Entry.Shown = objects.Digest(late)
	}
	s.decided = DecideDown(s.f)
}

func flows() iter.Seq[*flow] {
	return func(yield func(*flow) bool) {
		for _, hub := range hubStates() {
			for bits := range 1 << 6 {
				bit := func(n int) bool { return bits&(1<<n) != 0 }
				for _, record := range []string{"None", "Place", "Elsewhere", "Object", "Another"} {
					for _, late := range []string{"None", "Shown", "Stale", "Users", "InVain"} {
						s := flow{
							hubState: hub, Record: record, Late: late, Reported: bit(0), CrossplaneReported: bit(1), Skips: bit(2), Keeps: bit(3),
							Secrets: bit(4), InVain: bit(5),
						}
						s.decide()
						if !yield(&s) {
							return
						}
					}
				}
			}
		}
	}
}

func TestDecideDown(t *testing.T) {
	may := func(s *flow) bool { return s.Exists && !s.Going && s.Secrets && (!s.Skips || s.Keeps) }
	// implied reports whether the claim's record and conditions identify its object.
	implied := func(s *flow) bool { return s.Record == "Object" || s.Record == "Place" && s.CrossplaneReported }
	wants := func(s *flow) bool { return s.Late == "None" || s.Late == "Stale" }
	exhaustive.Check(t, flows(), []exhaustive.Property[*flow]{
		{
			Sentence: "Nothing flows without an object and an identity, from an object that is being deleted, or in silence.",
			When:     func(s *flow) bool { return !may(s) }, Holds: func(s *flow) bool { return reflect.DeepEqual(s.decided, Down{}) },
		},
		{
			Sentence: "Secrets wait for nothing.",
			When:     may, Holds: func(s *flow) bool { return s.decided.Secrets },
		},
		{
			Sentence: "Late fields are applied where the claim does not show them, would keep them and has no value of its user's.",
			When:     func(s *flow) bool { return may(s) && (!s.Young || s.Ready) },
			Holds:    func(s *flow) bool { return (s.decided.Late != nil) == wants(s) },
		},
		{
			Sentence: "Late fields of a new object that is not ready wait for others, and not long.",
			When:     func(s *flow) bool { return may(s) && wants(s) && s.Young && !s.Ready },
			Holds: func(s *flow) bool {
				return s.decided.Late == nil && s.decided.RequeueAfter > 0 && s.decided.RequeueAfter <= patience
			},
		},
		{
			Sentence: "Nothing waits for an object that is old or ready.",
			When:     func(s *flow) bool { return !s.Young || s.Ready }, Holds: func(s *flow) bool { return s.decided.RequeueAfter == 0 },
		},
		{
			Sentence: "A claim without a status is not made to wait for the record.",
			When:     func(s *flow) bool { return !s.Reported }, Holds: func(s *flow) bool { return s.decided.Record == "" },
		},
		{
			Sentence: "Nothing is recorded that is implied, or that the cluster did not keep.",
			When:     func(s *flow) bool { return s.Exists && (implied(s) || s.InVain) },
			Holds: func(s *flow) bool {
				record, left := DecideRecord(s.f)
				return record == "" && left == 0 && s.decided.Record == ""
			},
		},
		{
			Sentence: "Any other object is recorded, unless it is new where announced: then its status may imply it.",
			When:     func(s *flow) bool { return s.Exists && !implied(s) && !s.InVain },
			Holds: func(s *flow) bool {
				record, left := DecideRecord(s.f)
				waits := s.Record == "Place" && s.Young && !s.Ready
				return (record == "bar/"+hubUID+"/"+claimUID) == !waits && (record == "") == waits && left > 0 == waits
			},
		},
		{
			Sentence: "What is written is not written again.",
			When:     func(s *flow) bool { return s.decided.Record != "" },
			Holds: func(s *flow) bool {
				then := s.f
				then.Claim = then.Claim.DeepCopy()
				ownership.SetRecord(then.Claim, s.decided.Record)
				return DecideDown(then).Record == ""
			},
		},
		{
			Sentence: "The same facts make the same decision, and are not changed.",
			Holds: func(s *flow) bool {
				before := objects.Digest(s.f.Claim.Object)
				return reflect.DeepEqual(DecideDown(s.f), s.decided) && objects.Digest(s.f.Claim.Object) == before
			},
		},
	})
}
