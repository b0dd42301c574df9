// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"iter"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/internal/exhaustive"
	"github.com/masthead-dev/masthead/pkg/condition"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/ownership"
)

// life is where a claim is in its life.
type life string

const (
	live     life = "Live"
	deleting life = "Deleting"
	vanished life = "Vanished"
)

// record is what a claim records of its object. The default target is the namespace "bar"; "old" is another one.
type record struct{ annotation, name string }

const claimUID, formerUID = "claim-uid", "former-claim-uid"

var (
	noRecord     = record{"", "None"}
	announcesBar = record{"bar//" + claimUID, "AnnouncesBar"}
	recordsBar   = record{"bar/uid-in-bar/" + claimUID, "RecordsBar"}
	announcesOld = record{"old//" + claimUID, "AnnouncesOld"}
	recordsOld   = record{"old/uid-in-old/" + claimUID, "RecordsOld"}
	restored     = record{"old/uid-in-old/" + formerUID, "RestoredFromABackup"}
)

// claimState is a state of a claim, as its owner and the agent can bring it about.
type claimState struct {
	Life                               life
	Protected, Paused                  bool
	Asks                               string // The annotation with the deletion policy.
	Record                             string
	Reported, Consents, Moves, Demands bool // Demands is the annotation that adopts.
	object                             *unstructured.Unstructured
}

func claimStates() []claimState {
	var out []claimState
	for _, l := range []life{live, deleting, vanished} {
		for _, r := range []record{noRecord, announcesBar, recordsBar, announcesOld, recordsOld, restored} {
			for bits := range 1 << 6 {
				bit := func(n int) bool { return bits&(1<<n) != 0 }
				s := claimState{
					Life: l, Record: r.name, Protected: bit(0) || l == vanished, Paused: bit(1), Reported: bit(2), Consents: bit(3), Moves: bit(4), Demands: bit(5),
				}
				switch {
				case l != live && (s.Moves || s.Demands || s.Consents):
					continue // That matters to claims that stay.
				case l == vanished && !bit(0), s.Consents && r == noRecord:
					continue // The same as without.
				case s.Reported && r != announcesBar && r != announcesOld:
					continue // Other records need no report.
				}
				for _, s.Asks = range []string{"", "Delete", "Orphan", "Keep"} {
					if l == live && !s.Moves && s.Asks != "" {
						continue // Nothing is removed.
					}
					s.object = s.claim(r)
					out = append(out, s)
				}
			}
		}
	}
	return out
}

func (s claimState) claim(r record) *unstructured.Unstructured {
	claim := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "db.acmeco.org/v1alpha1", "kind": "MySQLInstance"}}
	claim.SetNamespace("foo")
	claim.SetName("db")
	claim.SetUID(claimUID)
	annotations := map[string]string{}
	set := func(is bool, key, value string) {
		if is {
			annotations[key] = value
		}
	}
	set(s.Paused, fleetv1alpha1.PausedAnnotation, fleetv1alpha1.PausedAnnotationTrue)
	set(s.Asks != "", fleetv1alpha1.DeletionPolicyAnnotation, s.Asks)
	set(r != noRecord, fleetv1alpha1.HubObjectAnnotation, r.annotation)
	set(s.Moves, fleetv1alpha1.OnTargetChangeAnnotation, fleetv1alpha1.OnTargetChangeRecreate)
	set(s.Demands, fleetv1alpha1.AdoptAnnotation, "true")
	claim.SetAnnotations(annotations)
	if was, ok := ownership.GetRecord(claim); ok && s.Consents {
		annotations[fleetv1alpha1.RecreateAnnotation] = was.Consent(claim)
		claim.SetAnnotations(annotations)
	}
	if s.Reported {
		claim.Object["status"] = map[string]any{"conditions": []any{map[string]any{"type": "Ready", "status": "True"}}}
	}
	if s.Life == deleting {
		claim.SetDeletionTimestamp(&metav1.Time{Time: time.Unix(1, 0)})
	}
	return claim
}

// shape is an object at a place of the hub.
type shape string

const (
	absent      shape = "None"
	made        shape = "Made"       // The agent made it for this claim.
	madeGoing   shape = "MadeGoing"  // It is being deleted.
	named       shape = "Named"      // It names the claim's source without its UID: an old one, or a stray.
	madeStale   shape = "MadeStale"  // Made for it as well, when the watch still showed an earlier namespace of the name.
	madeBefore  shape = "MadeBefore" // It was made for the claim that a backup was taken of.
	former      shape = "Former"     // An earlier namespace of the claim's name left it.
	foreign     shape = "Foreign"
	unowned     shape = "Unowned"
	consenting  shape = "Consenting" // Unowned, and the hub lets the claim adopt it.
	releasedOne shape = "Released"   // A deleted claim of the source left it.
)

func hubObject(namespace string, s shape) *unstructured.Unstructured {
	if s == absent {
		return nil
	}
	us := ownership.Source{Identifier: "w1", Namespace: "foo"}
	annotations := map[string]string{}
	switch s { //nolint:exhaustive // The others have no annotations.
	case made, madeGoing, madeStale, named, former, madeBefore:
		annotations = us.Annotations()
	case foreign:
		annotations = ownership.Source{Identifier: "w2", Namespace: "foo"}.Annotations()
	case consenting:
		annotations[fleetv1alpha1.AdoptableByAnnotation] = us.String()
	case releasedOne:
		annotations[fleetv1alpha1.ReleasedFromAnnotation] = us.String()
	}
	switch s { //nolint:exhaustive // The others do not name a claim.
	case made, madeGoing:
		annotations[fleetv1alpha1.SourceClaimUIDAnnotation] = claimUID
	case madeStale:
		annotations[fleetv1alpha1.SourceClaimUIDAnnotation] = claimUID
		annotations[fleetv1alpha1.SourceClusterUIDAnnotation], annotations[fleetv1alpha1.SourceNamespaceUIDAnnotation] = "c1", "n0"
	case madeBefore:
		annotations[fleetv1alpha1.SourceClaimUIDAnnotation] = formerUID
	case former:
		annotations[fleetv1alpha1.SourceClaimUIDAnnotation] = formerUID
		annotations[fleetv1alpha1.SourceClusterUIDAnnotation], annotations[fleetv1alpha1.SourceNamespaceUIDAnnotation] = "c1", "n0"
	}
	obj := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{}}}
	obj.SetNamespace(namespace)
	obj.SetName("db")
	obj.SetUID(types.UID("uid-in-" + namespace))
	obj.SetAnnotations(annotations)
	if s == madeGoing {
		obj.SetDeletionTimestamp(&metav1.Time{Time: time.Unix(1, 0)})
	}
	return obj
}

// hubState is what is known of the hub's objects: at the claim's target, and in the namespace "old".
type hubState struct {
	Hub         string // Known, Unknown, or Gone for good.
	Target, Old shape
	target, old *unstructured.Unstructured
}

func hubStates() []hubState {
	out := []hubState{{Hub: "Unknown", Target: absent, Old: absent}, {Hub: "Gone", Target: absent, Old: absent}}
	for _, target := range []shape{absent, made, madeGoing, madeStale, named, madeBefore, former, foreign, unowned, consenting, releasedOne} {
		for _, old := range []shape{absent, made, madeGoing, named, madeBefore} {
			out = append(out, hubState{"Known", target, old, hubObject("bar", target), hubObject("old", old)})
		}
	}
	return out
}

// setting is what the hub's administrators decide.
type setting struct {
	Class                                                            string
	Published                                                        string
	Targeted, Withdrawn, Unpaired, Unresolved, Unauthenticated, Full bool
	class                                                            *fleetv1alpha1.EnrollmentClass
}

func settings() []setting {
	var out []setting
	for _, class := range []string{"", "Disabled", "Delete", "Orphan", "RecreateAlways", "OrphanForbidden"} {
		for _, published := range []string{"Unknown", "No", "Offered"} {
			// Each of these ends the decision by itself, so that they are not combined with each other.
			for _, fact := range []string{"", "NotTargeted", "Withdrawn", "Unpaired", "Unresolved", "Unauthenticated", "Full", "UnresolvedAndFull"} {
				if class == "Disabled" && fact != "" || class == "" && (fact == "NotTargeted" || fact == "Withdrawn" || fact == "Unpaired") {
					continue // It is not looked up.
				}
				s := setting{
					Class: class, Published: published, Targeted: class != "" && class != "Disabled" && fact != "NotTargeted" && fact != "Unpaired",
					Withdrawn: fact == "Withdrawn", Unpaired: fact == "Unpaired", Unresolved: fact == "Unresolved" || fact == "UnresolvedAndFull",
					Unauthenticated: fact == "Unauthenticated", Full: fact == "Full" || fact == "UnresolvedAndFull",
				}
				if class != "" {
					agent := fleetv1alpha1.AgentSpec{Mode: fleetv1alpha1.AgentModeReadWrite, DefaultTargetNamespace: "bar"}
					switch class {
					case "Disabled":
						agent.Mode = fleetv1alpha1.AgentModeDisabled
					case "Orphan":
						agent.DeletionPolicy = fleetv1alpha1.DeletionPolicyOrphan
					case "RecreateAlways":
						agent.RecreatePolicy = fleetv1alpha1.RecreatePolicyAlways
					case "OrphanForbidden":
						agent.OrphanPolicy = fleetv1alpha1.OrphanPolicyForbidden
					}
					if s.Withdrawn {
						agent.AllowedTargetNamespaces = &fleetv1alpha1.AllowedNamespaces{}
					}
					s.class = &fleetv1alpha1.EnrollmentClass{Spec: fleetv1alpha1.EnrollmentClassSpec{Agent: agent}}
				}
				out = append(out, s)
			}
		}
	}
	return out
}

// situation is a combination of all of them, with the plan for it.
type situation struct {
	claimState
	hubState
	setting
	f    Facts
	plan Plan
}

func (s *situation) String() string {
	why := ""
	if s.plan.Problem != nil {
		why = s.plan.Problem.Reason
	}
	var steps []string
	for _, step := range s.plan.Steps {
		steps = append(steps, fmt.Sprintf("%s at %q (%s)", step.Do, step.At.Namespace, step.Policy))
	}
	return fmt.Sprintf("claim %+v, hub %s target %s old %s, setting %+v: steps %q problem %q down %t all %t",
		s.claimState, s.Hub, s.Target, s.Old, s.setting, steps, why, s.plan.Down.Object != nil, s.plan.Down.WithSecrets)
}

// facts are what the agent gathers in a situation.
func (s *situation) facts() Facts {
	problem := func(is bool, why string) *condition.Error {
		if is {
			return &condition.Error{Reason: why}
		}
		return nil
	}
	f := offeredClaim(s.object)
	f.Vanished, f.Protected = s.Life == vanished, s.Protected
	f.Class, f.PublishedKnown, f.Published = s.class, s.Published != "Unknown", s.Published == "Offered"
	f.Offered = f.Published && f.Class != nil
	f.Unresolved, f.Full = problem(s.Unresolved, fleetv1alpha1.ReasonReferencesUnresolved), problem(s.Full, fleetv1alpha1.ReasonClaimLimitReached)
	f.Unauthenticated = problem(s.Unauthenticated, fleetv1alpha1.ReasonCredentialsMissing)
	if f.IsDisabled() {
		f.Pairing, f.Target = nil, nil
		return f // Nothing else is looked up.
	}
	if !s.Targeted {
		f.Target = nil
		f.Untargeted = problem(f.Class != nil && !s.Unpaired, fleetv1alpha1.ReasonTargetNamespaceNotAllowed)
	}
	if f.Class == nil || s.Unpaired {
		f.Pairing = nil
	} else {
		f.Pairing = &Pairing{
			Class: "default", Agent: f.Class.Spec.Agent, Namespace: "foo", Allowed: func(target string) bool { return target == "bar" },
		}
	}
	f.Hub.Known, f.Hub.Gone = s.Hub == "Known", s.Hub == "Gone"
	objects := map[string]*unstructured.Unstructured{"bar": s.target, "old": s.old}
	if f.Target != nil {
		f.Hub.Target = s.target
	}
	recorded, isRecorded := f.RecordedPlace()
	if isRecorded {
		f.Hub.Recorded = objects[recorded.Namespace]
	}
	if f.IsGoing() || f.Own() == nil {
		for _, namespace := range []string{"bar", "old"} {
			at, obj := f.PlaceIn(namespace), objects[namespace]
			known := isRecorded && at == recorded || f.Target != nil && at == *f.Target
			if obj != nil && !known && f.IsOwn(obj) {
				f.Hub.Elsewhere = append(f.Hub.Elsewhere, PlacedObject{Place: at, Object: obj})
			}
		}
	}
	return f
}

func situations() iter.Seq[*situation] {
	claims, hubs, all := claimStates(), hubStates(), settings()
	return func(yield func(*situation) bool) {
		for _, c := range claims {
			for _, h := range hubs {
				if c.Demands && h.Target != releasedOne {
					continue // It is about no other object.
				}
				for _, o := range all {
					if c.Life != live && (o.Unresolved || o.Full) || o.Published != "Offered" && (o.Unresolved || o.Full || o.Unauthenticated) {
						continue // These decide first.
					}
					s := situation{claimState: c, hubState: h, setting: o}
					s.f = s.facts()
					s.plan = Decide(s.f)
					if !yield(&s) {
						return
					}
				}
			}
		}
	}
}

// does returns the steps of a plan with an action.
func (s *situation) does(actions ...Action) []Step {
	var out []Step
	for _, step := range s.plan.Steps {
		if slices.Contains(actions, step.Do) {
			out = append(out, step)
		}
	}
	return out
}

// before reports whether each step with one action comes after one with another.
func (s *situation) before(first, then Action) bool {
	i := slices.IndexFunc(s.plan.Steps, func(step Step) bool { return step.Do == first })
	j := slices.IndexFunc(s.plan.Steps, func(step Step) bool { return step.Do == then })
	return j < 0 || 0 <= i && i < j
}

func every(steps []Step, holds func(Step) bool) bool {
	return !slices.ContainsFunc(steps, func(step Step) bool { return !holds(step) })
}

// TestDecideExhaustive checks what a plan never does, in every situation. What it does is in TestDecide.
func TestDecideExhaustive(t *testing.T) {
	pushes := func(s *situation) bool { return len(s.does(Push)) > 0 }
	creates := func(s *situation) bool {
		return slices.ContainsFunc(s.does(Push), func(p Step) bool { return p.Saw == nil })
	}
	removes := func(s *situation) bool { return len(s.does(Remove)) > 0 }
	deletes := func(s *situation) bool {
		return slices.ContainsFunc(s.does(Remove), func(p Step) bool { return p.Policy == fleetv1alpha1.DeletionPolicyDelete })
	}
	serves := func(s *situation) bool { return s.class != nil && s.Class != "Disabled" }
	isLive := func(s *situation) bool { return s.Life == live }
	existed := func(s *situation) bool {
		was, ok := ownership.GetRecord(s.f.Claim)
		return ok && was.Existed(s.f.Claim)
	}
	// isClaims reports whether an object is the claim's by a rule of this test's own: where the claim goes, it names the
	// source; elsewhere, it is recorded, or nothing was and it has the claim's UID.
	isClaims := func(s *situation, obj *unstructured.Unstructured) bool {
		is := s.Old
		if obj.GetNamespace() == "bar" {
			is = s.Target
		}
		ours := is == made || is == madeGoing || is == madeStale || is == named || is == madeBefore
		switch namespace, reported := obj.GetNamespace(), s.Reported; {
		case !ours:
			return false
		case namespace == "bar" && s.f.Target != nil:
			return true
		case s.Record == recordsBar.name, s.Record == announcesBar.name && reported:
			return namespace == "bar"
		case s.Record == recordsOld.name, s.Record == announcesOld.name && reported:
			return namespace == "old"
		}
		return is == made || is == madeGoing || is == madeStale || is == madeBefore && s.Record == restored.name
	}
	exhaustive.Check(t, situations(), []exhaustive.Property[*situation]{
		{
			Sentence: "The finalizer is on the claim before anything is created or changed for it.",
			When:     pushes, Holds: func(s *situation) bool {
				return s.before(Protect, Push) && s.before(Protect, Adopt) || len(s.does(Adopt)) == 0 && s.before(Protect, Push)
			},
		},
		{
			Sentence: "Nothing is written over an object that is not the claim's, unless the hub consents.",
			When:     pushes, Holds: func(s *situation) bool {
				return every(s.does(Push), func(p Step) bool { return p.Saw == nil || s.f.Owns(p.Saw) || s.before(Adopt, Push) })
			},
		},
		{
			Sentence: "An object is adopted only if the hub consents, or if the source left it and its claim demands it.",
			When:     func(s *situation) bool { return len(s.does(Adopt)) > 0 },
			Holds:    func(s *situation) bool { return s.Target == consenting || s.Target == releasedOne && s.Demands },
		},
		{
			Sentence: "Nothing is written to an object that is being deleted.",
			When:     pushes, Holds: func(s *situation) bool {
				return every(s.does(Push, Adopt), func(p Step) bool { return p.Saw == nil || p.Saw.GetDeletionTimestamp() == nil })
			},
		},
		{
			Sentence: "Nothing is pushed while the hub's objects are not known.",
			When:     func(s *situation) bool { return s.Hub != "Known" }, Holds: func(s *situation) bool { return !pushes(s) },
		},
		{
			Sentence: "Nothing is pushed for a claim that is paused, goes, or has no identity, class, target or offer.",
			When: func(s *situation) bool {
				return s.Paused || !isLive(s) || s.Unauthenticated || !serves(s) || !s.Targeted || s.Published != "Offered"
			},
			Holds: func(s *situation) bool { return len(s.does(Push, Adopt, Protect, DryRunCreate)) == 0 },
		},
		{
			Sentence: "Nothing is pushed with unresolved references.",
			When:     func(s *situation) bool { return s.Unresolved }, Holds: func(s *situation) bool { return !pushes(s) },
		},
		{
			Sentence: "A claim has at most one object: none is created while one of its own is elsewhere.",
			When:     func(s *situation) bool { return s.Hub == "Known" && s.old != nil && isClaims(s, s.old) },
			Holds:    func(s *situation) bool { return !creates(s) },
		},
		{
			Sentence: "What was lost is not recreated without the consent of the class, of the claim's owner or to a move.",
			When:     func(s *situation) bool { return existed(s) && s.Class != "RecreateAlways" && !s.Consents && !s.Moves },
			Holds:    func(s *situation) bool { return !creates(s) },
		},
		{
			Sentence: "Beyond the limit nothing is created, and nothing is removed to be created elsewhere, before a move has begun.",
			When:     func(s *situation) bool { return s.Full },
			Holds: func(s *situation) bool {
				return !creates(s) && (!removes(s) || s.Old == madeGoing || s.target != nil && s.f.Owns(s.target))
			},
		},
		{
			Sentence: "Nothing is deleted that the class or the claim keeps.",
			When:     removes, Holds: func(s *situation) bool { return !deletes(s) || s.Class != "Orphan" && s.Asks != "Orphan" },
		},
		{
			Sentence: "Nothing is deleted for a misspelt policy, without a class, or where the claim asks for what its class forbids.",
			When:     func(s *situation) bool { return s.Asks == "Keep" || s.class == nil || s.Asks == "Orphan" },
			Holds:    func(s *situation) bool { return !deletes(s) },
		},
		{
			Sentence: "Nothing is deleted for a paused claim.",
			When:     func(s *situation) bool { return s.Paused }, Holds: func(s *situation) bool { return !deletes(s) && (!removes(s) || s.Life == vanished) },
		},
		{
			Sentence: "An object of a live claim is removed only to move it, at its owner's request.",
			When:     func(s *situation) bool { return isLive(s) && removes(s) },
			Holds: func(s *situation) bool {
				return s.Moves && every(s.does(Remove), func(p Step) bool { return p.To != nil && *p.To == *s.f.Target && p.At != *p.To })
			},
		},
		{
			Sentence: "Before a move begins, the hub has accepted the object at its new place.",
			When: func(s *situation) bool {
				return isLive(s) && removes(s) && s.Old != madeGoing && (s.target == nil || !s.f.Owns(s.target))
			},
			Holds: func(s *situation) bool { return s.before(DryRunCreate, Remove) },
		},
		{
			Sentence: "Only what is at the target, recorded, or the claim's own is removed.",
			When:     removes, Holds: func(s *situation) bool {
				recorded, isRecorded := s.f.RecordedPlace()
				return every(s.does(Remove), func(p Step) bool {
					return isRecorded && p.At == recorded || s.f.Target != nil && p.At == *s.f.Target || p.Saw != nil && isClaims(s, p.Saw)
				})
			},
		},
		{
			Sentence: "All of a claim's objects that are known are removed before it is let go.",
			When: func(s *situation) bool {
				return s.Hub == "Known" && len(s.does(Release)) > 0 && s.Class != "Disabled"
			},
			Holds: func(s *situation) bool {
				for _, obj := range []*unstructured.Unstructured{s.target, s.old} {
					if obj == nil || !isClaims(s, obj) {
						continue
					}
					if !slices.ContainsFunc(s.does(Remove), func(p Step) bool { return p.At.Namespace == obj.GetNamespace() }) {
						return false
					}
				}
				return true
			},
		},
		{
			Sentence: "A claim is let go only when its objects are removed and no creation can land any more, when the hub has no such kind, " +
				"or by a class that disables claims.",
			When: func(s *situation) bool { return len(s.does(Release)) > 0 },
			Holds: func(s *situation) bool {
				return s.Class == "Disabled" || s.Hub == "Gone" || s.before(AwaitCreations, Release)
			},
		},
		{
			Sentence: "A claim that is gone is forgotten only when no creation can land any more, or by a class that disables claims.",
			When:     func(s *situation) bool { return s.Life == vanished && len(s.does(Forget)) > 0 },
			Holds:    func(s *situation) bool { return s.Class == "Disabled" || s.before(AwaitCreations, Forget) },
		},
		{
			Sentence: "A claim is forgotten only if it is gone, or never had the finalizer and goes or is not served.",
			When:     func(s *situation) bool { return len(s.does(Forget)) > 0 },
			Holds: func(s *situation) bool {
				return s.Life == vanished || !s.Protected && (s.Life == deleting || s.Class == "Disabled")
			},
		},
		{
			Sentence: "A claim whose hub is not known keeps its finalizer.",
			When:     func(s *situation) bool { return s.Hub == "Unknown" && serves(s) },
			Holds:    func(s *situation) bool { return len(s.does(Release)) == 0 },
		},
		{
			Sentence: "No password flows without an identity, to a disabled or paused claim, or from a namespace that the class has withdrawn.",
			When: func(s *situation) bool {
				return s.Unauthenticated || !serves(s) || s.Paused || !s.Targeted ||
					s.Withdrawn && s.plan.Down.Object != nil && s.plan.Down.Object.GetNamespace() == "old"
			},
			Holds: func(s *situation) bool { return !s.plan.Down.WithSecrets },
		},
		{
			Sentence: "Nothing flows from an object that is not the claim's, unless it is adopted.",
			When:     func(s *situation) bool { return s.plan.Down.Object != nil },
			Holds: func(s *situation) bool {
				return isClaims(s, s.plan.Down.Object) || s.plan.Down.Object == s.target && len(s.does(Adopt)) > 0
			},
		},
		{
			Sentence: "A claim that goes or is disabled gets no password.",
			When:     func(s *situation) bool { return !isLive(s) || s.Class == "Disabled" },
			Holds:    func(s *situation) bool { return !s.plan.Down.WithSecrets },
		},
		{
			Sentence: "Nothing is reported of a claim that is gone.",
			When:     func(s *situation) bool { return s.Life == vanished },
			Holds: func(s *situation) bool {
				return s.plan.SkipReport && s.plan.Problem == nil && s.plan.Down.Object == nil
			},
		},
		{
			Sentence: "What is not done is explained, or is done when something that is not known yet becomes known.",
			When:     func(s *situation) bool { return len(s.plan.Steps) == 0 && s.Life != vanished },
			Holds: func(s *situation) bool {
				return s.plan.Problem != nil || s.Published == "Unknown" || s.Hub == "Unknown" || s.Hub == "Gone" || s.Unpaired
			},
		},
		{
			Sentence: "A live claim that nothing stands in the way of is pushed.",
			When: func(s *situation) bool {
				free := s.Target == made || s.Target == madeStale || s.Target == named || s.Target == madeBefore || s.Target == absent && (!existed(s) || s.Class == "RecreateAlways")
				return isLive(s) && !s.Paused && serves(s) && s.Targeted && s.Published == "Offered" && s.Hub == "Known" &&
					!s.Unresolved && !s.Full && !s.Unauthenticated && free && (s.old == nil || !isClaims(s, s.old))
			},
			Holds: pushes,
		},
		{
			Sentence: "A claim that is deleted is let go once nothing stands in the way.",
			When: func(s *situation) bool {
				return s.Life == deleting && !s.Paused && serves(s) && !s.Unauthenticated && s.Hub == "Known" && (s.Asks == "" || s.Asks == "Delete")
			},
			Holds: func(s *situation) bool { return len(s.does(Release, Forget)) > 0 },
		},
		{
			Sentence: "The same facts make the same plan.",
			Holds:    func(s *situation) bool { return Decide(s.f).equal(s.plan) },
		},
	})
}

// equal compares plans by what they do and say.
func (p Plan) equal(q Plan) bool {
	same := slices.EqualFunc(p.Steps, q.Steps, func(a, b Step) bool {
		return a.Do == b.Do && a.At == b.At && a.Saw == b.Saw && a.Policy == b.Policy
	})
	return same && p.Down == q.Down && p.SkipReport == q.SkipReport && (p.Problem == nil) == (q.Problem == nil) && p.RequeueAfter == q.RequeueAfter && p.RequeueSlowly == q.RequeueSlowly
}
