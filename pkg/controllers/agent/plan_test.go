// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/condition"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/agenttest"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/ownership"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/reason"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/request"
	"github.com/masthead-dev/masthead/pkg/crossplane"
)

// offeredClaim are the facts of a claim "foo/db" that goes to the namespace "bar" of the hub, where nothing is known yet.
func offeredClaim(claim *unstructured.Unstructured) facts {
	at := bar("db")
	class := &fleetv1alpha1.EnrollmentClass{Spec: fleetv1alpha1.EnrollmentClassSpec{Agent: fleetv1alpha1.AgentSpec{
		Mode: fleetv1alpha1.AgentModeReadWrite, DefaultTargetNamespace: "bar",
	}}}
	return facts{
		Request: request.Request{ClusterName: "w1", NamespacedName: types.NamespacedName{Namespace: "foo", Name: "db"}, Kind: at.Kind},
		claim:   claim, us: ownership.Source{Identifier: "w1", Namespace: "foo"},
		home:  ownership.Residence{Cluster: "c1", Namespace: "n1"},
		class: class, className: "default", publishedKnown: true, published: true, offered: true, form: crossplane.FormClaim,
		pairing: &pairing{class: "default", agent: class.Spec.Agent, namespace: "foo"}, target: &at,
	}
}

// TestDecide has every situation of a claim, and what is done in it.
func TestDecide(t *testing.T) {
	const uid = "claim-uid"
	var (
		annotate = func(f *facts, key, value string) {
			annotations := f.claim.GetAnnotations()
			if annotations == nil {
				annotations = map[string]string{}
			}
			annotations[key] = value
			f.claim.SetAnnotations(annotations)
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
		named = func(f *facts, obj *unstructured.Unstructured) {
			f.hub.named = append(f.hub.named, namedObject{place: f.placeIn(obj.GetNamespace()), object: obj})
		}
		// records has the claim record its object in a namespace.
		records = func(f *facts, namespace string) {
			annotate(f, fleetv1alpha1.HubObjectAnnotation, ownership.RecordFor(f.claim, mine(namespace)))
		}
		// synced is a claim whose object is where it belongs.
		synced = func(f *facts) {
			records(f, "bar")
			f.protected, f.hub.target = true, mine("bar")
			f.hub.recorded = f.hub.target
		}
		// movedAway is a claim whose object is where it was recorded, and not where the claim would go now.
		movedAway = func(f *facts) {
			records(f, "old")
			f.protected, f.hub.recorded = true, mine("old")
		}
		recreate = func(f *facts) {
			annotate(f, fleetv1alpha1.OnTargetChangeAnnotation, fleetv1alpha1.OnTargetChangeRecreate)
		}
		deleted   = func(f *facts) { f.claim = going(f.claim); f.protected = true }
		disabled  = func(f *facts) { f.class.Spec.Agent.Mode = fleetv1alpha1.AgentModeDisabled }
		nobody    = func(f *facts) { f.unauthenticated = &condition.Problem{Reason: reason.ReasonCredentialsMissing} }
		classless = func(f *facts) { f.class, f.pairing, f.target, f.offered = nil, nil, nil, false }
		withdrawn = func(f *facts) { f.publishedKnown, f.published, f.offered = true, false, false }
		hubGone   = func(f *facts) { f.hub.known, f.hub.gone = false, true }
		unknown   = func(f *facts) {
			f.hub.known, f.hub.unknown = false, &condition.Problem{Reason: reason.ReasonKindNotServed}
		}
		misspelt = func(f *facts) { annotate(f, fleetv1alpha1.DeletionPolicyAnnotation, "Keep") }
	)
	const (
		nothing = ""
		status  = "status"
		all     = "all"
	)
	for name, tc := range map[string]struct {
		because string
		given   []func(*facts)
		steps   []action
		removes []string // The namespaces of the hub from which something is removed.
		tells   string   // The reason that is told, "silent" for nothing, or empty for Synced.
		down    string
		waits   string // The namespace of the hub in which the claim waits for a change.
	}{
		"New": {because: "A claim of which the hub has nothing is protected and pushed.", steps: []action{actionProtect, actionPush}},
		"Synced": {
			because: "One that the hub has is compared, and what the hub made of it comes back.",
			given:   []func(*facts){synced}, steps: []action{actionProtect, actionPush}, down: all,
		},
		"References": {
			because: "A claim whose references are not resolved is not carried. What the hub has of it comes back.",
			given: []func(*facts){synced, func(f *facts) {
				f.claim.Object["spec"] = map[string]any{"references": []any{map[string]any{"toFieldPath": "spec.size", "from": "x"}}}
			}},
			tells: reason.ReasonReferencesUnresolved, down: all,
		},
		"NamespacesUnknown": {
			because: "Nothing is pushed while it is not known where claims go; the status comes back.",
			given:   []func(*facts){synced, func(f *facts) { f.pairing, f.target, f.hub.target = nil, nil, nil }}, tells: "silent", down: status,
		},
		"NamespacesForbidden": {
			because: "If it will not be known in a moment, it is told.",
			given: []func(*facts){func(f *facts) {
				f.pairing, f.target, f.unpaired = nil, nil, &condition.Problem{Reason: reason.ReasonWorkloadForbidden}
			}},
			tells: reason.ReasonWorkloadForbidden,
		},
		"NoCredentials": {
			because: "Without anybody's rights nothing is done in the hub. The status is the claim's own, and comes back; Secrets need rights.",
			given:   []func(*facts){synced, nobody}, tells: reason.ReasonCredentialsMissing, down: status,
		},
		"PublicationsUnknown": {because: "Nobody knows yet what the hub offers.", given: []func(*facts){func(f *facts) { f.publishedKnown = false }}, tells: "silent"},
		"NoClass": {
			because: "Nobody says whose rights to use. The status comes back.",
			given:   []func(*facts){synced, classless}, tells: reason.ReasonClassNotFound, down: status,
		},
		"NotOffered": {
			because: "A class that does not offer the kind any more stops what goes up, and nothing else.",
			given:   []func(*facts){synced, func(f *facts) { f.offered = false }}, tells: reason.ReasonKindNotOffered, down: all,
		},
		"NotOfferedAndNotRecorded": {
			because: "A claim that was never carried gets nothing of a kind that is not offered.",
			given:   []func(*facts){func(f *facts) { f.offered, f.hub.target = false, mine("bar") }}, tells: reason.ReasonKindNotOffered,
		},
		"Withdrawn": {
			because: "What is late or secret about a kind that is not published is not known.",
			given:   []func(*facts){synced, withdrawn}, tells: reason.ReasonKindNotOffered, down: status,
		},
		"NotAllowed": {
			because: "A target that is not allowed stops what goes up, and nothing else.",
			given: []func(*facts){synced, func(f *facts) {
				f.target, f.hub.target, f.untargeted = nil, nil, &condition.Problem{Reason: reason.ReasonTargetNamespaceNotAllowed}
			}},
			tells: reason.ReasonTargetNamespaceNotAllowed, down: all,
		},
		"HubUnknown":   {because: "Nothing is decided while the hub's objects are not known.", given: []func(*facts){func(f *facts) { f.hub.known = false }}, tells: "silent", waits: "bar"},
		"HubForbidden": {because: "If they will not be known in a moment, it is told.", given: []func(*facts){unknown}, tells: reason.ReasonKindNotServed, waits: "bar"},
		"Conflict": {
			because: "A name that another source holds is left alone, and waited for.",
			given:   []func(*facts){func(f *facts) { f.hub.target = object("bar", them) }},
			steps:   []action{actionDisclose}, tells: reason.ReasonConflict, waits: "bar",
		},
		"Unowned": {
			because: "So is an object that names no source.",
			given:   []func(*facts){func(f *facts) { f.hub.target = object("bar", ownership.Source{}) }},
			steps:   []action{actionDisclose}, tells: reason.ReasonConflict, waits: "bar",
		},
		"Former": {
			because: "A namespace that was made again does not inherit.",
			given:   []func(*facts){func(f *facts) { f.hub.target = former() }},
			steps:   []action{actionDisclose}, tells: reason.ReasonNamespaceRecreated, waits: "bar",
		},
		"Adoptable": {
			because: "An object whose owner in the hub consents is adopted before it is pushed.",
			given: []func(*facts){func(f *facts) {
				f.hub.target = object("bar", ownership.Source{})
				f.hub.target.SetAnnotations(map[string]string{fleetv1alpha1.AdoptableByAnnotation: us.String()})
			}},
			steps: []action{actionProtect, actionAdopt, actionPush},
		},
		"StrayBesideTheClaimsObject": {
			because: "An object elsewhere that names the source is not obeyed while the claim's is where it belongs.",
			given:   []func(*facts){synced, func(f *facts) { named(f, mine("stray")) }},
			steps:   []action{actionProtect, actionPush}, down: all,
		},
		"StrayBesideAnObjectThatIsNotRecordedYet": {
			because: "Nor before the claim has recorded its object.",
			given:   []func(*facts){func(f *facts) { f.hub.target = mine("bar"); named(f, mine("stray")) }},
			steps:   []action{actionProtect, actionPush}, down: all,
		},
		"OnlyElsewhere": {
			because: "A claim from before there were records is not given a second object.",
			given:   []func(*facts){func(f *facts) { f.protected = true; named(f, mine("old")) }},
			tells:   reason.ReasonTargetNamespaceChanged, down: all, waits: "old",
		},
		"OnlyElsewhereOfAnEarlierNamespace": {
			because: "What an earlier namespace left elsewhere is in nobody's way.",
			given:   []func(*facts){func(f *facts) { n := former(); n.SetNamespace("old"); named(f, n) }},
			steps:   []action{actionProtect, actionPush},
		},
		"TargetChanged": {
			because: "Nothing moves silently. What the hub has comes back.",
			given:   []func(*facts){movedAway}, tells: reason.ReasonTargetNamespaceChanged, down: all, waits: "old",
		},
		"TargetChangedToATakenName": {
			because: "The claim stays where it is, whoever has the name.",
			given:   []func(*facts){movedAway, func(f *facts) { f.hub.target = object("bar", them) }},
			tells:   reason.ReasonTargetNamespaceChanged, down: all, waits: "old",
		},
		"Moves": {
			because: "Who asks for it is moved, if the hub would accept it.",
			given:   []func(*facts){movedAway, recreate}, steps: []action{actionRehearse, actionRemove}, removes: []string{"old"},
			tells: "silent", down: all, waits: "old",
		},
		"MovesAndHasBegun": {
			because: "What has begun is not rehearsed again.",
			given:   []func(*facts){movedAway, recreate, func(f *facts) { going(f.hub.recorded) }},
			steps:   []action{actionRemove}, removes: []string{"old"}, tells: "silent", down: all, waits: "old",
		},
		"MovesAndHasArrived": {
			because: "Nor what has arrived.",
			given:   []func(*facts){movedAway, recreate, func(f *facts) { f.hub.target = mine("bar") }},
			steps:   []action{actionRemove}, removes: []string{"old"}, tells: "silent", down: all, waits: "old",
		},
		"MovesToATakenName": {
			because: "Who wants to move to a name that is taken waits for it. The object that is there comes back.",
			given:   []func(*facts){movedAway, recreate, func(f *facts) { f.hub.target = object("bar", them) }},
			steps:   []action{actionDisclose}, tells: reason.ReasonConflict, down: status, waits: "bar",
		},
		"MovesWithAMisspeltPolicy": {
			because: "Nothing is deleted on a guess.",
			given:   []func(*facts){movedAway, recreate, misspelt}, tells: reason.ReasonInvalidDeletionPolicy, down: all, waits: "old",
		},
		"Lost": {
			because: "An object that somebody else deleted is not replaced.",
			given:   []func(*facts){func(f *facts) { f.protected = true; records(f, "bar") }}, tells: reason.ReasonHubObjectDeleted, waits: "bar",
		},
		"LostAndAlwaysRecreated": {
			because: "Unless the class wants that.",
			given: []func(*facts){func(f *facts) {
				f.protected = true
				records(f, "bar")
				f.class.Spec.Agent.RecreatePolicy = fleetv1alpha1.RecreatePolicyAlways
			}},
			steps: []action{actionProtect, actionPush},
		},
		"BeingLost": {
			because: "One that is being deleted is shown.",
			given:   []func(*facts){synced, func(f *facts) { going(f.hub.target) }}, tells: reason.ReasonHubObjectDeleted, down: status, waits: "bar",
		},
		"BeingRecreated": {
			because: "One that is replaced when it is gone is waited for; its going is an event.",
			given: []func(*facts){synced, func(f *facts) {
				going(f.hub.target)
				f.class.Spec.Agent.RecreatePolicy = fleetv1alpha1.RecreatePolicyAlways
			}},
			tells: reason.ReasonRecreating, down: status,
		},
		"Disabled":             {because: "A class that is Disabled lets claims be.", given: []func(*facts){synced, disabled}, steps: []action{actionRelease}, tells: "silent"},
		"DisabledAndReleased":  {because: "Those that were let go are forgotten.", given: []func(*facts){disabled}, steps: []action{actionForget}, tells: "silent"},
		"DeletedAndNotOurs":    {because: "A claim without our finalizer is not ours to touch.", given: []func(*facts){deleted, func(f *facts) { f.protected = false }}, steps: []action{actionForget}, tells: "silent"},
		"DeletedAndDisabled":   {because: "A class that is Disabled deletes nothing in the hub.", given: []func(*facts){synced, deleted, disabled}, steps: []action{actionRelease}, tells: "silent"},
		"DeletedWithNobody":    {because: "A deletion needs somebody's rights.", given: []func(*facts){synced, deleted, nobody}, tells: reason.ReasonCredentialsMissing, down: status},
		"DeletedAndKindGone":   {because: "A hub without the definition has no objects.", given: []func(*facts){deleted, hubGone}, steps: []action{actionRelease}, tells: "silent"},
		"DeletedAndHubUnknown": {because: "Nothing is let go while the hub's objects are not known.", given: []func(*facts){deleted, unknown}, tells: reason.ReasonKindNotServed},
		"DeletedAndMisspelt":   {because: "Nothing is deleted on a guess.", given: []func(*facts){synced, deleted, misspelt}, tells: reason.ReasonInvalidDeletionPolicy, down: status},
		"DeletedWithoutAClass": {
			because: "A class that is not there may have said Orphan.", given: []func(*facts){synced, deleted, classless},
			tells: reason.ReasonClassNotFound, down: status,
		},
		"Deleted": {
			because: "A claim goes when its object is gone and none can be created any more.", given: []func(*facts){synced, deleted},
			steps: []action{actionRemove, actionAwaitCreations, actionRelease}, removes: []string{"bar"}, tells: "silent",
		},
		"DeletedElsewhere": {
			because: "Its object is removed where it is recorded and where it would go.", given: []func(*facts){movedAway, deleted},
			steps: []action{actionRemove, actionRemove, actionAwaitCreations, actionRelease}, removes: []string{"old", "bar"}, tells: "silent",
		},
		"DeletedBesideAStray": {
			because: "An object elsewhere that the claim does not record does not go with it.",
			given:   []func(*facts){synced, deleted, func(f *facts) { named(f, mine("stray")) }},
			steps:   []action{actionRemove, actionAwaitCreations, actionRelease}, removes: []string{"bar"}, tells: "silent",
		},
		"DeletedWithoutARecord": {
			because: "A claim from before there were records has its object wherever one names it.",
			given:   []func(*facts){deleted, func(f *facts) { named(f, mine("old")) }},
			steps:   []action{actionRemove, actionRemove, actionAwaitCreations, actionRelease}, removes: []string{"old", "bar"}, tells: "silent",
		},
		"DeletedWithoutATarget": {
			because: "If nobody says either where it would be, the hub is asked.",
			given:   []func(*facts){deleted, func(f *facts) { f.target, f.hub.target = nil, nil }},
			steps:   []action{actionRemoveNamed, actionAwaitCreations, actionRelease}, tells: "silent",
		},
		"Vanished": {
			because: "What a claim left that went without waiting is removed.", given: []func(*facts){synced, func(f *facts) { f.vanished = true }},
			steps: []action{actionRemove, actionAwaitCreations, actionForget}, removes: []string{"bar"}, tells: "silent",
		},
		"VanishedAndDisabled":   {because: "A class that is Disabled deletes nothing.", given: []func(*facts){disabled, func(f *facts) { f.vanished = true }}, steps: []action{actionForget}, tells: "silent"},
		"VanishedWithNobody":    {because: "There is nobody to tell.", given: []func(*facts){nobody, func(f *facts) { f.vanished = true }}, tells: "silent"},
		"VanishedAndHubUnknown": {because: "It is looked for again.", given: []func(*facts){unknown, func(f *facts) { f.vanished = true }}, tells: "silent"},
	} {
		t.Run(name, func(t *testing.T) {
			claim := agenttest.Parse(t, `{'metadata':{'namespace':'foo','name':'db','uid':'`+uid+`'},'spec':{}}`)
			f := offeredClaim(claim)
			f.hub.known = true
			for _, given := range tc.given {
				given(&f)
			}
			p := decide(f)

			var steps []action
			var removes []string
			for _, st := range p.steps {
				steps = append(steps, st.do)
				if st.do == actionRemove {
					removes = append(removes, st.at.Namespace)
				}
			}
			if !slices.Equal(steps, tc.steps) || !slices.Equal(removes, tc.removes) {
				t.Errorf("%s want steps %v removing %v, got %v removing %v", tc.because, tc.steps, tc.removes, steps, removes)
			}
			tells := ""
			if p.problem != nil {
				tells = p.problem.Reason
			}
			if p.silent {
				tells += "silent"
			}
			if tells != tc.tells {
				t.Errorf("%s want %q to be told, got %q", tc.because, tc.tells, tells)
			}
			brings := nothing
			if p.down.object != nil {
				brings = status
				if p.down.all {
					brings = all
				}
			}
			if brings != tc.down {
				t.Errorf("%s want %q to flow down, got %q", tc.because, tc.down, brings)
			}
			waits := ""
			if p.waitAt != nil {
				waits = p.waitAt.Namespace
			}
			if waits != tc.waits {
				t.Errorf("%s want to wait in %q, got %q", tc.because, tc.waits, waits)
			}
			if p.down.object != nil && !f.owns(p.down.object) {
				t.Errorf("%s want nothing of others to flow down, got %v", tc.because, p.down.object)
			}
		})
	}
}
