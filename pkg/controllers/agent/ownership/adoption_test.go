// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package ownership

import (
	"maps"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
)

// formerly are annotations of an object pushed by a namespace with the UID "old" of the cluster "c1".
func formerly(annotations map[string]string) map[string]string {
	maps.Copy(annotations, Residence{"c1", "old"}.Annotations())
	return annotations
}

func TestAdoptable(t *testing.T) {
	us := Source{Identifier: "w1", Namespace: "foo"}
	by, from := fleetv1alpha1.AdoptableByAnnotation, fleetv1alpha1.ReleasedFromAnnotation
	adopt := map[string]string{fleetv1alpha1.AdoptAnnotation: "true"}
	now := metav1.NewTime(time.Unix(1, 0))
	for name, tc := range map[string]struct {
		reason     string
		us         Source
		home       Residence
		Hub, claim map[string]string
		deleting   bool
		want       bool
	}{
		"ByName":               {reason: "The hub's administrator named us.", us: us, Hub: map[string]string{by: "w1/foo"}, want: true},
		"AnyNamespace":         {reason: "He named our cluster.", us: us, Hub: map[string]string{by: "w1/*"}, want: true},
		"OtherNamespace":       {reason: "He named another namespace.", us: us, Hub: map[string]string{by: "w1/bar"}, claim: adopt},
		"OtherCluster":         {reason: "He named another cluster.", us: us, Hub: map[string]string{by: "w2/*"}, claim: adopt},
		"AnyCluster":           {reason: "There is no consent for all clusters.", us: us, Hub: map[string]string{by: "*/*"}, claim: adopt},
		"OnlyTheClaim":         {reason: "The owner of a workload cluster alone gains nothing.", us: us, claim: adopt},
		"OwnsForged":           {reason: "What a claim says about consent is not consent.", us: us, claim: map[string]string{by: "w1/foo", from: "w1/foo"}},
		"TakenBack":            {reason: "It was his, and he asks for it.", us: us, Hub: map[string]string{from: "w1/foo"}, claim: adopt, want: true},
		"NotTakenBackByItself": {reason: "A claim that is created again does not request the old data.", us: us, Hub: map[string]string{from: "w1/foo"}},
		"NotTrue":              {reason: "Only one value is a request.", us: us, Hub: map[string]string{from: "w1/foo"}, claim: map[string]string{fleetv1alpha1.AdoptAnnotation: "yes"}},
		"ReleasedByOther":      {reason: "It belonged to another source.", us: us, Hub: map[string]string{from: "w2/foo"}, claim: adopt},
		"Deleting":             {reason: "What goes is not taken.", us: us, Hub: map[string]string{by: "w1/foo"}, deleting: true},
		"Owned":                {reason: "An object with an owner cannot be adopted, regardless of other annotations.", us: us, Hub: map[string]string{by: "w1/foo", fleetv1alpha1.SourceUIDAnnotation: "w2"}},
		"Former": {
			reason: "What an earlier namespace of the name has left is given by the hub's administrator.", us: us, home: Residence{"c1", "new"}, want: true,
			Hub: formerly(map[string]string{by: "w1/foo", fleetv1alpha1.SourceUIDAnnotation: "w1", fleetv1alpha1.SourceNamespaceAnnotation: "foo"}),
		},
		"FormerWithoutConsent": {
			reason: "It is not its successor's.", us: us, home: Residence{"c1", "new"}, claim: adopt,
			Hub: formerly(map[string]string{fleetv1alpha1.SourceUIDAnnotation: "w1", fleetv1alpha1.SourceNamespaceAnnotation: "foo"}),
		},
		"FormerReleased": {
			reason: "Nor is what it gave up.", us: us, home: Residence{"c1", "new"}, claim: adopt, Hub: formerly(map[string]string{from: "w1/foo"}),
		},
		"FormerOfAnother": {
			reason: "An earlier namespace of another source is not ours.", us: us, home: Residence{"c1", "new"},
			Hub: formerly(map[string]string{by: "w1/foo", fleetv1alpha1.SourceUIDAnnotation: "w2", fleetv1alpha1.SourceNamespaceAnnotation: "foo"}),
		},
		"ReleasedBySame": {
			reason: "The same namespace takes back what it gave up.", us: us, home: Residence{"c1", "old"}, claim: adopt, want: true,
			Hub: formerly(map[string]string{from: "w1/foo"}),
		},
		"Anonymous":         {reason: "A cluster without identifier owns nothing.", us: Source{Identifier: "", Namespace: "foo"}, Hub: map[string]string{by: "/foo"}},
		"SlashInIdentifier": {reason: "Identifiers are free text, namespaces are not.", us: Source{Identifier: "w1/foo", Namespace: "bar"}, Hub: map[string]string{by: "w1/foo"}},
	} {
		t.Run(name, func(t *testing.T) {
			obj := &metav1.ObjectMeta{Annotations: tc.Hub}
			if tc.deleting {
				obj.DeletionTimestamp = &now
			}
			if got := Adoptable(obj, &metav1.ObjectMeta{Annotations: tc.claim}, tc.us, tc.home); got != tc.want {
				t.Errorf("%s want %v, got %v", tc.reason, tc.want, got)
			}
		})
	}
}
