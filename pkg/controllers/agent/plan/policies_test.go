// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/condition"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/ownership"
)

func TestMayCreate(t *testing.T) {
	place := ownership.Place{NamespacedName: types.NamespacedName{Namespace: "bar", Name: "db"}}
	annotated := func(record string, consent ...string) map[string]string {
		out := map[string]string{fleetv1alpha1.HubObjectAnnotation: record}
		if len(consent) > 0 {
			out[fleetv1alpha1.RecreateAnnotation] = consent[0]
		}
		return out
	}
	recorded := func(namespace string, consent ...string) map[string]string {
		return annotated(namespace+"/lost/claim", consent...)
	}
	announced := func(namespace string, consent ...string) map[string]string {
		return annotated(namespace+"//claim", consent...)
	}
	for name, tc := range map[string]struct {
		reason      string
		annotations map[string]string
		policy      fleetv1alpha1.RecreatePolicy
		moves       bool
		shown       bool // whether the claim shows a condition of Crossplane's
		consent     string
		want        bool
	}{
		"Announced": {
			reason: "Nothing says that what the claim has announced was ever created.", annotations: announced("bar"), policy: "Never", want: true,
		},
		"AnnouncedLost": {
			reason: "Its status says so.", annotations: announced("bar"), policy: "Never", shown: true, consent: "claim",
		},
		"AnnouncedRequested": {
			reason:      "The first object is named by the claim's UID, because its own is not recorded.",
			annotations: announced("bar", "claim"), policy: "Never", shown: true, want: true,
		},
		"AnnouncedMoves": {
			reason: "A claim that moves loses its object at the old place.", annotations: announced("foo"), policy: "Never", moves: true, shown: true, want: true,
		},
		"RequestedForTheFirst": {
			reason: "The consent to the loss of the first object is none to that of the second.", annotations: recorded("bar", "claim"), policy: "Never",
		},
		"New":              {reason: "A claim that never had an object gets one.", policy: "Never", want: true},
		"Lost":             {reason: "What was lost is not replaced without a word.", annotations: recorded("bar"), policy: "Never"},
		"NoPolicy":         {reason: "A class from before there was a policy says Never.", annotations: recorded("bar")},
		"Always":           {reason: "The class may want it.", annotations: recorded("bar"), policy: "Always", want: true},
		"Requested":        {reason: "The claim's owner may want it.", annotations: recorded("bar", "lost"), policy: "Never", want: true},
		"RequestedBefore":  {reason: "What was said about another loss does not count.", annotations: recorded("bar", "earlier"), policy: "Never"},
		"RequestedForever": {reason: "A claim cannot consent to the replacement of every future loss.", annotations: recorded("bar", "true"), policy: "Never"},
		"Moves":            {reason: "A claim that moves loses its object at the old place.", annotations: recorded("foo"), policy: "Never", moves: true, want: true},
		"DoesNotMove":      {reason: "A claim does not move without a request.", annotations: recorded("foo"), policy: "Never"},
		"MovesNoFurther":   {reason: "One that has arrived does not move.", annotations: recorded("bar"), policy: "Never", moves: true},
	} {
		t.Run(name, func(t *testing.T) {
			claim := &unstructured.Unstructured{}
			claim.SetUID("claim")
			claim.SetAnnotations(tc.annotations)
			if tc.shown {
				_ = unstructured.SetNestedSlice(claim.Object, []any{map[string]any{"type": "Synced", "status": "True"}}, "status", "conditions")
			}
			p := mayCreate(claim, tc.policy, tc.moves, "MySQLInstance", place)
			if (p == nil) != tc.want {
				t.Errorf("%s got %v", tc.reason, p)
			}
			if p != nil && (p.Reason != fleetv1alpha1.ReasonHubObjectDeleted || !strings.Contains(p.Message, fleetv1alpha1.RecreateAnnotation+": "+cmp.Or(tc.consent, "lost"))) {
				t.Errorf("want the way out named, got %v", p)
			}
		})
	}
}

func TestDeletionPolicy(t *testing.T) {
	class := func(p fleetv1alpha1.DeletionPolicy) *fleetv1alpha1.EnrollmentClass {
		return &fleetv1alpha1.EnrollmentClass{Spec: fleetv1alpha1.EnrollmentClassSpec{Agent: fleetv1alpha1.AgentSpec{DeletionPolicy: p}}}
	}
	forbidding := func(p fleetv1alpha1.DeletionPolicy) *fleetv1alpha1.EnrollmentClass {
		c := class(p)
		c.Spec.Agent.OrphanPolicy = fleetv1alpha1.OrphanPolicyForbidden
		return c
	}
	for name, tc := range map[string]struct {
		reason    string
		class     *fleetv1alpha1.EnrollmentClass
		requested string
		want      fleetv1alpha1.DeletionPolicy
		says      string
	}{
		"Default":               {reason: "What is deleted here is deleted there.", class: class("Delete"), want: "Delete"},
		"BeforeTheFieldExisted": {reason: "A class that was stored without the field means its default.", class: class(""), want: "Delete"},
		"ClassOrphans":          {reason: "The class decides.", class: class("Orphan"), want: "Orphan"},
		"ClaimOrphans":          {reason: "A claim may ask for what can be undone.", class: class("Delete"), requested: "Orphan", want: "Orphan"},
		"ClaimDeletes":          {reason: "It may say what the class says.", class: class("Delete"), requested: "Delete", want: "Delete"},
		"ClaimCannotDelete":     {reason: "It may not ask for what cannot be undone and the class does not want.", class: class("Orphan"), requested: "Delete", want: "Orphan"},
		"Misspelt":              {reason: "Nothing is deleted on a guess.", class: class("Delete"), requested: "orphan", says: fleetv1alpha1.ReasonInvalidDeletionPolicy},
		"MisspeltInOrphanClass": {reason: "A mistake is reported in every class.", class: class("Orphan"), requested: "Keep", says: fleetv1alpha1.ReasonInvalidDeletionPolicy},
		"ForbiddenOrphan":       {reason: "The class bears the cost.", class: forbidding("Delete"), requested: "Orphan", says: fleetv1alpha1.ReasonInvalidDeletionPolicy},
		"ForbiddenInOrphan":     {reason: "The class orphans anyway.", class: forbidding("Orphan"), requested: "Orphan", want: "Orphan"},
		"ForbiddenNotRequested": {reason: "It concerns those that ask.", class: forbidding(""), want: "Delete"},
		"NoClass":               {reason: "What the class said is not known any more.", says: fleetv1alpha1.ReasonClassNotFound},
		"NoClassDelete":         {reason: "It may have said Orphan.", requested: "Delete", says: fleetv1alpha1.ReasonClassNotFound},
		"NoClassOrphan":         {reason: "Every class allows this without a deletion.", requested: "Orphan", want: "Orphan"},
	} {
		t.Run(name, func(t *testing.T) {
			claim := &metav1.ObjectMeta{}
			if tc.requested != "" {
				claim.Annotations = map[string]string{fleetv1alpha1.DeletionPolicyAnnotation: tc.requested}
			}
			got, p := deletionPolicy(tc.class, "c", claim)
			says := ""
			if p != nil {
				says = p.Reason
			}
			if got != tc.want || says != tc.says {
				t.Errorf("%s want %q %q, got %q %q", tc.reason, tc.want, tc.says, got, says)
			}
		})
	}
}

// TestRefusesFreeName: a problem reported for a free name must be reported for a taken one, too, to those that may not
// know which it is.
func TestRefusesFreeName(t *testing.T) {
	lost := map[string]string{fleetv1alpha1.HubObjectAnnotation: "bar/lost/claim"}
	unresolved := &condition.Error{Reason: fleetv1alpha1.ReasonReferencesUnresolved}
	for name, tc := range map[string]struct {
		reason      string
		annotations map[string]string
		unresolved  *condition.Error
		want        string
	}{
		"Nothing":    {reason: "An object would be created."},
		"Lost":       {reason: "The claim says that it had one.", annotations: lost, want: fleetv1alpha1.ReasonHubObjectDeleted},
		"Unresolved": {reason: "The claim is not carried yet.", unresolved: unresolved, want: fleetv1alpha1.ReasonReferencesUnresolved},
		"Both":       {reason: "The loss is reported first, as for a free name.", annotations: lost, unresolved: unresolved, want: fleetv1alpha1.ReasonHubObjectDeleted},
	} {
		t.Run(name, func(t *testing.T) {
			claim := &unstructured.Unstructured{}
			claim.SetUID("claim")
			claim.SetAnnotations(tc.annotations)
			f := offeredClaim(claim)
			f.Unresolved = tc.unresolved
			got := ""
			if p := f.RefusesFreeName(); p != nil {
				got = p.Reason
			}
			if got != tc.want {
				t.Errorf("%s\nwant %q, got %q", tc.reason, tc.want, got)
			}
		})
	}
}
