// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/internal/test/agenttest"
	"github.com/masthead-dev/masthead/pkg/condition"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/ownership"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/ownership/ownershiptest"
	"github.com/masthead-dev/masthead/pkg/crossplane"
	"github.com/masthead-dev/masthead/pkg/multicluster"
)

// offeredClaim are the facts of a claim "foo/db" with target "bar" in the hub, where nothing is known yet.
func offeredClaim(claim *unstructured.Unstructured) Facts {
	at := ownershiptest.InBar("db")
	class := &fleetv1alpha1.EnrollmentClass{Spec: fleetv1alpha1.EnrollmentClassSpec{Agent: fleetv1alpha1.AgentSpec{
		Mode: fleetv1alpha1.AgentModeReadWrite, DefaultTargetNamespace: "bar",
	}}}
	return Facts{
		ObjectRequest: multicluster.ObjectRequest{
			ClusterName: "w1", NamespacedName: types.NamespacedName{Namespace: "foo", Name: "db"}, Kind: at.Kind,
		},
		HubKind: at.Kind, Claim: claim, Source: ownership.Source{Identifier: "w1", Namespace: "foo"},
		Residence: ownership.Residence{Cluster: "c1", Namespace: "n1"},
		Class:     class, ClassName: "default", PublishedKnown: true, Published: true, Offered: true, Form: crossplane.FormClaim,
		Pairing: &Pairing{Class: "default", Agent: class.Spec.Agent, Namespace: "foo"}, Target: &at,
	}
}

// TestDecide covers every state of a claim, with its plan.
func TestDecide(t *testing.T) {
	const uid = "claim-uid"
	var (
		annotate = func(f *Facts, key, value string) {
			annotations := f.Claim.GetAnnotations()
			if annotations == nil {
				annotations = map[string]string{}
			}
			annotations[key] = value
			f.Claim.SetAnnotations(annotations)
		}
		// object is an object of the hub in a namespace, of a source.
		object = func(namespace string, us ownership.Source) *unstructured.Unstructured {
			obj := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{}}}
			obj.SetNamespace(namespace)
			obj.SetName("db")
			obj.SetUID(types.UID("uid-in-" + namespace))
			if us != (ownership.Source{}) {
				obj.SetAnnotations(us.Annotations())
			}
			return obj
		}
		us    = ownership.Source{Identifier: "w1", Namespace: "foo"}
		them  = ownership.Source{Identifier: "w2", Namespace: "foo"}
		mine  = func(namespace string) *unstructured.Unstructured { return object(namespace, us) }
		going = func(obj *unstructured.Unstructured) *unstructured.Unstructured {
			obj.SetDeletionTimestamp(&metav1.Time{Time: time.Unix(1, 0)})
			return obj
		}
		former = func() *unstructured.Unstructured {
			obj := mine("bar")
			annotations := obj.GetAnnotations()
			annotations[fleetv1alpha1.SourceClusterUIDAnnotation], annotations[fleetv1alpha1.SourceNamespaceUIDAnnotation] = "c1", "n0"
			obj.SetAnnotations(annotations)
			return obj
		}
		// made is an object that the agent created for the claim.
		made = func(namespace string) *unstructured.Unstructured {
			obj := mine(namespace)
			annotations := obj.GetAnnotations()
			annotations[fleetv1alpha1.SourceClaimUIDAnnotation] = uid
			obj.SetAnnotations(annotations)
			return obj
		}
		elsewhere = func(f *Facts, namespace string) {
			f.Hub.Elsewhere = append(f.Hub.Elsewhere, PlacedObject{Place: f.PlaceIn(namespace), Object: made(namespace)})
		}
		// records makes the claim record its object in a namespace: by its UID, or, if it announced the place before, by that
		// and a condition of Crossplane's.
		announced = false
		records   = func(f *Facts, namespace string) {
			if announced {
				annotate(f, fleetv1alpha1.HubObjectAnnotation, namespace+"//"+uid)
				_ = unstructured.SetNestedSlice(f.Claim.Object, []any{map[string]any{"type": "Ready", "status": "True"}}, "status", "conditions")
				return
			}
			annotate(f, fleetv1alpha1.HubObjectAnnotation, ownership.RecordFor(f.Claim, mine(namespace)))
		}
		// synced is a claim whose object is at its target.
		synced = func(f *Facts) {
			records(f, "bar")
			f.Protected, f.Hub.Target = true, made("bar")
			f.Hub.Recorded = f.Hub.Target
		}
		// movedAway is a claim whose object is at the recorded place, but not at its target.
		movedAway = func(f *Facts) {
			records(f, "old")
			f.Protected, f.Hub.Recorded = true, made("old")
		}
		recreate = func(f *Facts) {
			annotate(f, fleetv1alpha1.OnTargetChangeAnnotation, fleetv1alpha1.OnTargetChangeRecreate)
		}
		deleted         = func(f *Facts) { f.Claim = going(f.Claim); f.Protected = true }
		disabled        = func(f *Facts) { f.Class.Spec.Agent.Mode = fleetv1alpha1.AgentModeDisabled }
		unauthenticated = func(f *Facts) { f.Unauthenticated = &condition.Error{Reason: fleetv1alpha1.ReasonCredentialsMissing} }
		classless       = func(f *Facts) { f.Class, f.Pairing, f.Target, f.Offered = nil, nil, nil, false }
		withdrawn       = func(f *Facts) { f.PublishedKnown, f.Published, f.Offered = true, false, false }
		hubGone         = func(f *Facts) { f.Hub.Known, f.Hub.Gone = false, true }
		unknown         = func(f *Facts) {
			f.Hub.Known, f.Hub.Unknown = false, &condition.Error{Reason: fleetv1alpha1.ReasonKindNotServed}
		}
		full       = func(f *Facts) { f.Full = &condition.Error{Reason: fleetv1alpha1.ReasonClaimLimitReached} }
		unresolved = func(f *Facts) { f.Unresolved = &condition.Error{Reason: fleetv1alpha1.ReasonReferencesUnresolved} }
		notAllowed = func(f *Facts) {
			f.Target, f.Hub.Target, f.Untargeted = nil, nil, &condition.Error{Reason: fleetv1alpha1.ReasonTargetNamespaceNotAllowed}
		}
		takenAway = func(f *Facts) {
			f.Pairing = &Pairing{
				Agent:   fleetv1alpha1.AgentSpec{DefaultTargetNamespace: "bar", AllowedTargetNamespaces: &fleetv1alpha1.AllowedNamespaces{}},
				Allowed: func(target string) bool { return target != "old" },
			}
		}
		halted   = func(f *Facts) { annotate(f, fleetv1alpha1.PausedAnnotation, fleetv1alpha1.PausedAnnotationTrue) }
		misspelt = func(f *Facts) { annotate(f, fleetv1alpha1.DeletionPolicyAnnotation, "Keep") }
	)
	const (
		nothing = ""
		status  = "status"
		all     = "all"
	)
	for name, tc := range map[string]struct {
		because string
		given   []func(*Facts)
		steps   []Action
		removes []string // The namespaces of the hub with removals.
		tells   string   // The reported reason, "silent" for none, or empty for Synced.
		Down    string
		waits   string // The namespace of the hub where the claim waits for a change.
	}{
		"New": {because: "A claim of which the hub has nothing is protected and pushed.", steps: []Action{Protect, Push}},
		"Synced": {
			because: "One that the hub has is compared, and what the hub made of it comes back.",
			given:   []func(*Facts){synced}, steps: []Action{Protect, Push}, Down: all,
		},
		"References": {
			because: "A claim whose references are not resolved is not carried. What the hub has of it comes back.",
			given:   []func(*Facts){synced, unresolved},
			tells:   fleetv1alpha1.ReasonReferencesUnresolved, Down: all,
		},
		"NamespacesUnknown": {
			because: "Nothing is pushed while it is not known where claims go; the status comes back.",
			given:   []func(*Facts){synced, func(f *Facts) { f.Pairing, f.Target, f.Hub.Target = nil, nil, nil }}, tells: "silent", Down: status,
		},
		"NamespacesForbidden": {
			because: "What will not be known soon is reported.",
			given: []func(*Facts){func(f *Facts) {
				f.Pairing, f.Target, f.Unpaired = nil, nil, &condition.Error{Reason: fleetv1alpha1.ReasonWorkloadForbidden}
			}},
			tells: fleetv1alpha1.ReasonWorkloadForbidden,
		},
		"NoCredentials": {
			because: "Without credentials nothing is done in the hub. The status is the claim's own, and comes back; Secrets need rights.",
			given:   []func(*Facts){synced, unauthenticated}, tells: fleetv1alpha1.ReasonCredentialsMissing, Down: status,
		},
		"PublicationsUnknown": {because: "It is not known yet what the hub offers.", given: []func(*Facts){func(f *Facts) { f.PublishedKnown = false }}, tells: "silent"},
		"NoClass": {
			because: "Without a class it is unknown whose rights to use. The status comes back.",
			given:   []func(*Facts){synced, classless}, tells: fleetv1alpha1.ReasonClassNotFound, Down: status,
		},
		"NotOffered": {
			because: "A class that does not offer the kind any more stops what goes up, and nothing else.",
			given:   []func(*Facts){synced, func(f *Facts) { f.Offered = false }}, tells: fleetv1alpha1.ReasonKindNotOffered, Down: all,
		},
		"NotOfferedAndNotRecorded": {
			because: "A claim that was never carried gets nothing of a kind that is not offered.",
			given:   []func(*Facts){func(f *Facts) { f.Offered, f.Hub.Target = false, mine("bar") }}, tells: fleetv1alpha1.ReasonKindNotOffered,
		},
		"Withdrawn": {
			because: "What is late or secret about a kind that is not published is not known.",
			given:   []func(*Facts){synced, withdrawn}, tells: fleetv1alpha1.ReasonKindNotOffered, Down: status,
		},
		"NotAllowed": {
			because: "A target that is not allowed stops what goes up, and Secrets. The status comes back.",
			given:   []func(*Facts){synced, notAllowed},
			tells:   fleetv1alpha1.ReasonTargetNamespaceNotAllowed, Down: status,
		},
		"NotAllowedNorOffered": {
			because: "That the kind is not offered either does not have Secrets flow again.",
			given:   []func(*Facts){synced, notAllowed, func(f *Facts) { f.Offered = false }},
			tells:   fleetv1alpha1.ReasonKindNotOffered, Down: status,
		},
		"HubUnknown":   {because: "Nothing is decided while the hub's objects are not known.", given: []func(*Facts){func(f *Facts) { f.Hub.Known = false }}, tells: "silent", waits: "bar"},
		"HubForbidden": {because: "Objects that will not be known soon are reported.", given: []func(*Facts){unknown}, tells: fleetv1alpha1.ReasonKindNotServed, waits: "bar"},
		"Full": {
			because: "The class allows no more objects.", given: []func(*Facts){full}, tells: fleetv1alpha1.ReasonClaimLimitReached,
		},
		"FullAndThere":    {because: "What exists stays.", given: []func(*Facts){synced, full}, steps: []Action{Protect, Push}, Down: all},
		"FullAndConflict": {because: "The holder is named.", given: []func(*Facts){full, func(f *Facts) { f.Hub.Target = object("bar", them) }}, steps: []Action{CheckVisibility}, tells: fleetv1alpha1.ReasonConflict, waits: "bar"},
		"Conflict": {
			because: "A name that another source holds is left alone, and waited for.",
			given:   []func(*Facts){func(f *Facts) { f.Hub.Target = object("bar", them) }},
			steps:   []Action{CheckVisibility}, tells: fleetv1alpha1.ReasonConflict, waits: "bar",
		},
		"Unowned": {
			because: "So is an object that names no source.",
			given:   []func(*Facts){func(f *Facts) { f.Hub.Target = object("bar", ownership.Source{}) }},
			steps:   []Action{CheckVisibility}, tells: fleetv1alpha1.ReasonConflict, waits: "bar",
		},
		"Former": {
			because: "A namespace that was made again does not inherit.",
			given:   []func(*Facts){func(f *Facts) { f.Hub.Target = former() }},
			steps:   []Action{CheckVisibility}, tells: fleetv1alpha1.ReasonNamespaceRecreated, waits: "bar",
		},
		"Adoptable": {
			because: "An object whose owner in the hub consents is adopted before it is pushed.",
			given: []func(*Facts){func(f *Facts) {
				f.Hub.Target = object("bar", ownership.Source{})
				f.Hub.Target.SetAnnotations(map[string]string{fleetv1alpha1.AdoptableByAnnotation: us.String()})
			}},
			steps: []Action{Protect, Adopt, Push},
		},
		"StrayAtTheAnnouncedPlace": {
			because: "An object at a place where the claim was to go, which the agent did not create for it, is a stray.",
			given: []func(*Facts){func(f *Facts) {
				annotate(f, fleetv1alpha1.HubObjectAnnotation, "old//"+uid)
				f.Protected, f.Hub.Recorded = true, mine("old")
			}},
			steps: []Action{Protect, Push},
		},
		"OnlyElsewhere": {
			because: "A claim whose object is elsewhere is not given a second one. Nothing flows from a place that it does not record.",
			given:   []func(*Facts){func(f *Facts) { f.Protected = true; elsewhere(f, "old") }},
			tells:   fleetv1alpha1.ReasonTargetNamespaceChanged, waits: "old",
		},
		"MovesFromElsewhere": {
			because: "The claim's own object moves, whether or not the claim records it.",
			given:   []func(*Facts){func(f *Facts) { f.Protected = true; elsewhere(f, "old") }, recreate},
			steps:   []Action{DryRunCreate, Remove}, removes: []string{"old"}, tells: "silent", waits: "old",
		},
		"TargetChanged": {
			because: "Nothing moves silently. What the hub has comes back.",
			given:   []func(*Facts){movedAway}, tells: fleetv1alpha1.ReasonTargetNamespaceChanged, Down: all, waits: "old",
		},
		"TargetChangedAndTheOldOneWithdrawn": {
			because: "No password flows from a namespace that the class does not allow any more.",
			given:   []func(*Facts){movedAway, takenAway}, tells: fleetv1alpha1.ReasonTargetNamespaceChanged, Down: status, waits: "old",
		},
		"TargetChangedToATakenName": {
			because: "The claim stays where it is, regardless of the name's holder.",
			given:   []func(*Facts){movedAway, func(f *Facts) { f.Hub.Target = object("bar", them) }},
			tells:   fleetv1alpha1.ReasonTargetNamespaceChanged, Down: all, waits: "old",
		},
		"Moves": {
			because: "Who asks for it is moved, if the hub would accept it.",
			given:   []func(*Facts){movedAway, recreate}, steps: []Action{DryRunCreate, Remove}, removes: []string{"old"},
			tells: "silent", Down: all, waits: "old",
		},
		"MovesAndHasBegun": {
			because: "What has begun is not rehearsed again.",
			given:   []func(*Facts){movedAway, recreate, func(f *Facts) { going(f.Hub.Recorded) }},
			steps:   []Action{Remove}, removes: []string{"old"}, tells: "silent", Down: all, waits: "old",
		},
		"MovesAndHasArrived": {
			because: "Nor what has arrived.",
			given:   []func(*Facts){movedAway, recreate, func(f *Facts) { f.Hub.Target = made("bar") }},
			steps:   []Action{Remove}, removes: []string{"old"}, tells: "silent", Down: all, waits: "old",
		},
		"MovesWithReferences": {
			because: "What could not be created at the other place is not let go.",
			given:   []func(*Facts){movedAway, recreate, unresolved},
			tells:   fleetv1alpha1.ReasonReferencesUnresolved, Down: all, waits: "old",
		},
		"MovesAtTheLimit": {
			because: "An object that could not be created again is not removed.",
			given:   []func(*Facts){movedAway, recreate, full},
			tells:   fleetv1alpha1.ReasonClaimLimitReached, Down: all, waits: "old",
		},
		"MovesWithReferencesAndHasBegun": {
			because: "What has begun goes on.",
			given:   []func(*Facts){movedAway, recreate, unresolved, func(f *Facts) { going(f.Hub.Recorded) }},
			steps:   []Action{Remove}, removes: []string{"old"}, tells: "silent", Down: all, waits: "old",
		},
		"MovesToATakenName": {
			because: "Who wants to move to a name that is taken waits for it. The object that is there comes back.",
			given:   []func(*Facts){movedAway, recreate, func(f *Facts) { f.Hub.Target = object("bar", them) }},
			steps:   []Action{CheckVisibility}, tells: fleetv1alpha1.ReasonConflict, Down: status, waits: "bar",
		},
		"MovesWithAMisspeltPolicy": {
			because: "Nothing is deleted on a guess.",
			given:   []func(*Facts){movedAway, recreate, misspelt}, tells: fleetv1alpha1.ReasonInvalidDeletionPolicy, Down: all, waits: "old",
		},
		"Lost": {
			because: "An object that another client deleted is not replaced.",
			given:   []func(*Facts){func(f *Facts) { f.Protected = true; records(f, "bar") }}, tells: fleetv1alpha1.ReasonHubObjectDeleted, waits: "bar",
		},
		"LostAndAlwaysRecreated": {
			because: "Unless the class wants that.",
			given: []func(*Facts){func(f *Facts) {
				f.Protected = true
				records(f, "bar")
				f.Class.Spec.Agent.RecreatePolicy = fleetv1alpha1.RecreatePolicyAlways
			}},
			steps: []Action{Protect, Push},
		},
		"BeingLost": {
			because: "One that is being deleted is shown.",
			given:   []func(*Facts){synced, func(f *Facts) { going(f.Hub.Target) }}, tells: fleetv1alpha1.ReasonHubObjectDeleted, Down: status, waits: "bar",
		},
		"BeingRecreated": {
			because: "One that is replaced when it is gone is waited for where it is: what is no longer the claim's is no event of the claim.",
			given: []func(*Facts){synced, func(f *Facts) {
				going(f.Hub.Target)
				f.Class.Spec.Agent.RecreatePolicy = fleetv1alpha1.RecreatePolicyAlways
			}},
			tells: fleetv1alpha1.ReasonRecreating, Down: status, waits: "bar",
		},
		"Disabled":               {because: "A class that is Disabled lets claims be.", given: []func(*Facts){synced, disabled}, steps: []Action{Release}, tells: "silent"},
		"DisabledAndReleased":    {because: "Those that were let go are forgotten.", given: []func(*Facts){disabled}, steps: []Action{Forget}, tells: "silent"},
		"DeletedAndNotOurs":      {because: "A claim without our finalizer is not ours to touch.", given: []func(*Facts){deleted, func(f *Facts) { f.Protected = false }}, steps: []Action{Forget}, tells: "silent"},
		"DeletedAndDisabled":     {because: "A class that is Disabled deletes nothing in the hub.", given: []func(*Facts){synced, deleted, disabled}, steps: []Action{Release}, tells: "silent"},
		"DeletedUnauthenticated": {because: "A deletion needs credentials.", given: []func(*Facts){synced, deleted, unauthenticated}, tells: fleetv1alpha1.ReasonCredentialsMissing, Down: status},
		"DeletedAndKindGone":     {because: "A hub without the definition has no objects.", given: []func(*Facts){deleted, hubGone}, steps: []Action{Release}, tells: "silent"},
		"DeletedAndHubUnknown":   {because: "Nothing is let go while the hub's objects are not known.", given: []func(*Facts){deleted, unknown}, tells: fleetv1alpha1.ReasonKindNotServed},
		"DeletedAndMisspelt":     {because: "Nothing is deleted on a guess.", given: []func(*Facts){synced, deleted, misspelt}, tells: fleetv1alpha1.ReasonInvalidDeletionPolicy, Down: status},
		"DeletedWithoutAClass": {
			because: "A class that is not there may have said Orphan.", given: []func(*Facts){synced, deleted, classless},
			tells: fleetv1alpha1.ReasonClassNotFound, Down: status,
		},
		"Deleted": {
			because: "A claim goes when its object is gone and none can be created any more.", given: []func(*Facts){synced, deleted},
			steps: []Action{Remove, AwaitCreations, Release}, removes: []string{"bar"}, tells: "silent",
		},
		"DeletedElsewhere": {
			because: "Its object is removed where it is recorded and where it would go.", given: []func(*Facts){movedAway, deleted},
			steps: []Action{Remove, Remove, AwaitCreations, Release}, removes: []string{"old", "bar"}, tells: "silent",
		},
		"DeletedWithoutARecord": {
			because: "The claim's object is removed wherever it names the claim.",
			given:   []func(*Facts){deleted, func(f *Facts) { elsewhere(f, "old") }},
			steps:   []Action{Remove, Remove, AwaitCreations, Release}, removes: []string{"bar", "old"}, tells: "silent",
		},
		"DeletedWithoutATarget": {
			because: "A claim without a target and a record has nothing but what names it.",
			given:   []func(*Facts){deleted, func(f *Facts) { f.Target, f.Hub.Target = nil, nil; elsewhere(f, "old") }},
			steps:   []Action{Remove, AwaitCreations, Release}, removes: []string{"old"}, tells: "silent",
		},
		"Paused": {
			because: "Nothing is compared, and nothing comes back.", given: []func(*Facts){synced, halted}, tells: fleetv1alpha1.ReasonReconcilePaused,
		},
		"PausedBeforeItWasCarried": {
			because: "It is not even protected, so that it can go.", given: []func(*Facts){halted}, tells: fleetv1alpha1.ReasonReconcilePaused,
		},
		"PausedInOtherWords": {
			because: "Crossplane does not take another value for a pause either.",
			given:   []func(*Facts){synced, func(f *Facts) { annotate(f, fleetv1alpha1.PausedAnnotation, "yes") }},
			steps:   []Action{Protect, Push}, Down: all,
		},
		"PausedAndRefused": {
			because: "Nothing else is checked.", given: []func(*Facts){synced, notAllowed, unauthenticated, unresolved, unknown, halted},
			tells: fleetv1alpha1.ReasonReconcilePaused,
		},
		"PausedWithoutAClass": {
			because: "Nor is its target looked up.", given: []func(*Facts){synced, classless, halted}, tells: fleetv1alpha1.ReasonReconcilePaused,
		},
		"PausedInConflict": {
			because: "Nor is the name's holder looked up in the hub.",
			given:   []func(*Facts){func(f *Facts) { f.Hub.Target = object("bar", them) }, halted}, tells: fleetv1alpha1.ReasonReconcilePaused,
		},
		"PausedAndAdoptable": {
			because: "Nothing is taken over.",
			given: []func(*Facts){func(f *Facts) {
				f.Hub.Target = object("bar", ownership.Source{})
				f.Hub.Target.SetAnnotations(map[string]string{fleetv1alpha1.AdoptableByAnnotation: us.String()})
			}, halted},
			tells: fleetv1alpha1.ReasonReconcilePaused,
		},
		"PausedBeforeItMoves": {
			because: "Nothing is let go.", given: []func(*Facts){movedAway, recreate, halted}, tells: fleetv1alpha1.ReasonReconcilePaused,
		},
		"PausedWhileItMoves": {
			because: "What the hub is deleting goes there, and nothing is created in its place.",
			given:   []func(*Facts){movedAway, recreate, func(f *Facts) { going(f.Hub.Recorded) }, halted}, tells: fleetv1alpha1.ReasonReconcilePaused,
		},
		"PausedAndLost": {
			because: "Nothing is created in the place of what was lost, regardless of the class.",
			given: []func(*Facts){synced, func(f *Facts) {
				f.Hub.Target, f.Hub.Recorded = nil, nil
				f.Class.Spec.Agent.RecreatePolicy = fleetv1alpha1.RecreatePolicyAlways
			}, halted},
			tells: fleetv1alpha1.ReasonReconcilePaused,
		},
		"PausedAndDisabled": {
			because: "A class that is Disabled lets paused claims be, too.", given: []func(*Facts){synced, disabled, halted},
			steps: []Action{Release}, tells: "silent",
		},
		"PausedAndDeleted": {
			because: "Its finalizer holds it until it is unpaused.", given: []func(*Facts){synced, deleted, halted}, tells: fleetv1alpha1.ReasonReconcilePaused,
		},
		"PausedAndDeletedWithMore": {
			because: "Neither a kind that is gone nor a policy lets it go.",
			given:   []func(*Facts){synced, deleted, hubGone, misspelt, unauthenticated, classless, halted}, tells: fleetv1alpha1.ReasonReconcilePaused,
		},
		"PausedAndDeletedAndNotOurs": {
			because: "A claim without our finalizer is not held.", steps: []Action{Forget}, tells: "silent",
			given: []func(*Facts){deleted, func(f *Facts) { f.Protected = false }, halted},
		},
		"PausedAndDeletedAndDisabled": {
			because: "A class that is Disabled holds nothing, and deletes nothing.", given: []func(*Facts){synced, deleted, disabled, halted},
			steps: []Action{Release}, tells: "silent",
		},
		"PausedAndVanished": {
			because: "Its owner cannot unpause it any more. Its object is released, which can be undone.",
			given:   []func(*Facts){synced, halted, func(f *Facts) { f.Vanished = true }},
			steps:   []Action{Remove, AwaitCreations, Forget}, removes: []string{"bar"}, tells: "silent",
		},
		"Vanished": {
			because: "What a claim left that went without waiting is removed.", given: []func(*Facts){synced, func(f *Facts) { f.Vanished = true }},
			steps: []Action{Remove, AwaitCreations, Forget}, removes: []string{"bar"}, tells: "silent",
		},
		"VanishedAndDisabled":     {because: "A class that is Disabled deletes nothing.", given: []func(*Facts){disabled, func(f *Facts) { f.Vanished = true }}, steps: []Action{Forget}, tells: "silent"},
		"VanishedUnauthenticated": {because: "There is no claim left to report on.", given: []func(*Facts){unauthenticated, func(f *Facts) { f.Vanished = true }}, tells: "silent"},
		"VanishedAndHubUnknown":   {because: "It is looked for again.", given: []func(*Facts){unknown, func(f *Facts) { f.Vanished = true }}, tells: "silent"},
	} {
		decided := func(t *testing.T) {
			t.Helper()
			claim := agenttest.Parse(t, `{'metadata':{'namespace':'foo','name':'db','uid':'`+uid+`'},'spec':{}}`)
			f := offeredClaim(claim)
			f.Hub.Known = true
			for _, given := range tc.given {
				given(&f)
			}
			p := Decide(f)

			var steps []Action
			var removes []string
			for _, st := range p.Steps {
				steps = append(steps, st.Do)
				if st.Do == Remove {
					removes = append(removes, st.At.Namespace)
				}
				if isPaused(f.Claim) && st.Do == Remove && st.Policy != fleetv1alpha1.DeletionPolicyOrphan {
					t.Errorf("%s want nothing to be deleted for a paused claim, got %v", tc.because, st)
				}
			}
			if !slices.Equal(steps, tc.steps) || !slices.Equal(removes, tc.removes) {
				t.Errorf("%s want steps %v removing %v, got %v removing %v", tc.because, tc.steps, tc.removes, steps, removes)
			}
			tells := ""
			if p.Problem != nil {
				tells = p.Problem.Reason
			}
			if p.SkipReport {
				tells += "silent"
			}
			if tells != tc.tells {
				t.Errorf("%s want %q to be reported, got %q", tc.because, tc.tells, tells)
			}
			brings := nothing
			if p.Down.Object != nil {
				brings = status
				if p.Down.WithSecrets {
					brings = all
				}
			}
			if brings != tc.Down {
				t.Errorf("%s want %q to flow down, got %q", tc.because, tc.Down, brings)
			}
			waits := ""
			if p.WaitAt != nil {
				waits = p.WaitAt.Namespace
			}
			if waits != tc.waits {
				t.Errorf("%s want to wait in %q, got %q", tc.because, tc.waits, waits)
			}
			if p.Down.Object != nil && (!f.Owns(p.Down.Object) || p.Down.Object != f.Hub.Target && p.Down.Object != f.Hub.Recorded) {
				t.Errorf("%s want nothing of others to flow down, got %v", tc.because, p.Down.Object)
			}
		}
		announced = false
		t.Run(name, decided)
		announced = true
		t.Run(name+"/Announced", decided)
	}
}
