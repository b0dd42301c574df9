// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package definition

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/internal/test/agenttest"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/index"
	"github.com/masthead-dev/masthead/pkg/hubidentity"
)

// TestDecidePhase covers every state of a definition, with its phase.
func TestDecidePhase(t *testing.T) {
	owner := hubidentity.Owner{ID: agenttest.OurHub}
	labelled := func(by hubidentity.Owner) *unstructured.Unstructured {
		crd := &unstructured.Unstructured{Object: map[string]any{}}
		crd.SetName("dbs.acmeco.org")
		crd.SetLabels(by.Stamp(nil))
		return crd
	}
	mirrored := labelled(owner)
	mirrored.SetName("compositions.apiextensions.crossplane.io")
	mirrored.SetAnnotations(map[string]string{fleetv1alpha1.MirroredAnnotation: "true"})
	pulled := func(f *Facts) {
		f.Current, f.Following, f.Followed = labelled(owner), true, index.Followed{InHub: true}
	}
	judged := func(f *Facts) { f.Judged = true }
	for name, tc := range map[string]struct {
		because string
		given   []func(*Facts)
		want    Phase
	}{
		"PublicationsUnknown": {because: "It is unknown what the hub offers.", given: []func(*Facts){pulled, func(f *Facts) { f.PublishedKnown = false }}, want: Unknown},
		"ClusterUnknown":      {because: "Nor what is in the cluster.", given: []func(*Facts){func(f *Facts) { f.ClusterKnown = false; f.Offered = true }}, want: Unknown},
		"New":                 {because: "What is offered is put there.", given: []func(*Facts){func(f *Facts) { f.Offered = true }}, want: Offered},
		"InPlace":             {because: "And kept as it is in the hub.", given: []func(*Facts){pulled, func(f *Facts) { f.Offered = true }}, want: Offered},
		"Nothing":             {because: "What is neither offered nor installed is not Masthead's.", want: Unrelated},
		"Mirrored": {
			because: "A copy of a definition of Crossplane is another controller's.", given: []func(*Facts){func(f *Facts) { f.Current = mirrored }}, want: Unrelated,
		},
		"Withdrawn":         {because: "What is not offered any more goes.", given: []func(*Facts){pulled, judged}, want: Withdrawn},
		"WithdrawnUnjudged": {because: "Once it is known which versions both sides serve.", given: []func(*Facts){pulled}, want: Unjudged},
		"Kept": {
			because: "A cluster without a class that decides keeps what it has.", given: []func(*Facts){pulled, judged, func(f *Facts) { f.Kept = true }}, want: Retained,
		},
		"FoundAfterARestart": {
			because: "A definition with our label of which nothing is known is read on both sides.",
			given:   []func(*Facts){func(f *Facts) { f.Current = labelled(owner) }}, want: Unjudged,
		},
		"HubNotKnownYet": {
			because: "That needs the hub's definitions to be known.",
			given:   []func(*Facts){func(f *Facts) { f.Current, f.JudgeableKnown = labelled(owner), false }}, want: Unknown,
		},
		"Judged": {
			because: "One that was judged and is followed in the cluster alone goes, too.",
			given:   []func(*Facts){pulled, func(f *Facts) { f.Followed.InHub, f.Judged = false, true }}, want: Withdrawn,
		},
		"JudgedAndNotFollowed": {
			because: "One that was found to be no definition of claims stays.",
			given:   []func(*Facts){func(f *Facts) { f.Current, f.Judged = labelled(owner), true }}, want: Retained,
		},
		"OtherHubs": {
			because: "One that another hub has put there is looked at, and not withdrawn.",
			given:   []func(*Facts){pulled, func(f *Facts) { f.Current = labelled(hubidentity.Owner{ID: "hub-b"}) }}, want: Unjudged,
		},
		"LabelGone":         {because: "So is one that has lost our label.", given: []func(*Facts){pulled, func(f *Facts) { f.Current = nil }}, want: Unjudged},
		"DeletionsOnly":     {because: "One whose claims are only let go is not ours to withdraw.", given: []func(*Facts){pulled, func(f *Facts) { f.Followed.DeletionsOnly, f.Judged = true, true }}, want: Retained},
		"DeletionsUnjudged": {because: "And is looked at when it changes.", given: []func(*Facts){pulled, func(f *Facts) { f.Followed.DeletionsOnly = true }}, want: Unjudged},
	} {
		t.Run(name, func(t *testing.T) {
			f := Facts{PublishedKnown: true, ClusterKnown: true, JudgeableKnown: true, Owner: owner}
			for _, given := range tc.given {
				given(&f)
			}
			if got := DecidePhase(f); got != tc.want {
				t.Errorf("%s want %s, got %s", tc.because, tc.want, got)
			}
		})
	}
}
