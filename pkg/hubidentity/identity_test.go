// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package hubidentity

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
)

func TestParse(t *testing.T) {
	for name, tc := range map[string]struct {
		reason, text string
		ok           bool
	}{
		"UID":     {"The UID of a namespace is the default.", "0a1b2c3d-0000-4000-8000-0123456789ab", true},
		"Name":    {"An operator may choose a name.", "prod-eu", true},
		"Longest": {"As long as every name that is made of it is valid.", strings.Repeat("a", MaxLength), true},
		"Long":    {"A finalizer would be too long.", strings.Repeat("a", MaxLength+1), false},
		"Empty":   {"No identity is no hub's.", "", false},
		"Dots":    {"A label can hold it, but it is no DNS label.", "a.b", false},
		"Comma":   {"Predecessors are separated by it.", "a,b", false},
		"Control": {"It is repeated in conditions.", "a\nb", false},
	} {
		t.Run(name, func(t *testing.T) {
			id, err := Parse(tc.text)
			if (err == nil) != tc.ok {
				t.Fatalf("%s got %v", tc.reason, err)
			}
			if err != nil {
				return
			}
			problems := append(validation.IsQualifiedName(id.Finalizer()), validation.IsValidLabelValue(string(id))...)
			if manager := id.FieldManager("masthead-application"); len(problems) > 0 || len(manager) > 128 {
				t.Errorf("%s got names that are not valid: %v, %q", tc.reason, problems, manager)
			}
		})
	}
}

func TestOwner(t *testing.T) {
	us := Owner{ID: "us", Predecessors: []Identity{"before"}}
	for name, tc := range map[string]struct {
		reason, label string
		owns          bool
		other         Identity
	}{
		"Ours":        {"It names us.", "us", true, ""},
		"Legacy":      {"It was written before hubs had identities.", "", true, ""},
		"Predecessor": {"What a hub left behind that we took over from is ours.", "before", true, ""},
		"Other":       {"It is another hub's.", "them", false, "them"},
		"Forged":      {"What cannot be an identity is not repeated.", "A b", false, "unknown"},
	} {
		t.Run(name, func(t *testing.T) {
			obj := &metav1.ObjectMeta{Labels: map[string]string{fleetv1alpha1.HubLabel: tc.label, fleetv1alpha1.ManagedByLabel: fleetv1alpha1.FieldManager}}
			other, foreign := us.Other(obj)
			if us.Owns(obj) != tc.owns || us.IsManaged(obj) != tc.owns || foreign == tc.owns || other != tc.other {
				t.Errorf("%s got %v, %q", tc.reason, us.Owns(obj), other)
			}
			obj.Labels = us.Stamp(obj.Labels)
			if !us.IsStamped(obj) || !us.Owns(obj) {
				t.Errorf("%s want it to be ours once we wrote it", tc.reason)
			}
		})
	}
	if (Owner{ID: "us"}).Owns(&metav1.ObjectMeta{Labels: map[string]string{fleetv1alpha1.HubLabel: "before"}}) {
		t.Error("a hub owns what another hub left without having taken over from it")
	}
}

func TestFinalizers(t *testing.T) {
	us := Owner{ID: "us", Predecessors: []Identity{"before"}}
	ours, legacy, before, theirs := Identity("us").Finalizer(), Identity("").Finalizer(), Identity("before").Finalizer(), Identity("them").Finalizer()
	for name, tc := range map[string]struct {
		reason                    string
		have, protected, released []string
	}{
		"None":        {"It is added.", nil, []string{ours}, nil},
		"Ours":        {"It is there.", []string{"a", ours}, []string{"a", ours}, []string{"a"}},
		"Legacy":      {"Ours takes its place, and the claim is protected all the time.", []string{legacy, "a"}, []string{ours, "a"}, []string{"a"}},
		"Predecessor": {"So it does of that of a hub that we took over from.", []string{before}, []string{ours}, nil},
		"Both":        {"Only one is left.", []string{legacy, "a", ours}, []string{ours, "a"}, []string{"a"}},
		"Another":     {"That of another hub is not touched.", []string{theirs}, []string{theirs, ours}, []string{theirs}},
	} {
		t.Run(name, func(t *testing.T) {
			before := slices.Clone(tc.have)
			if diff := cmp.Diff(tc.protected, us.Protected(tc.have)); diff != "" {
				t.Errorf("%s protected: -want +got:\n%s", tc.reason, diff)
			}
			if got := us.Released(tc.have); len(got) != len(tc.released) || len(got) > 0 && !slices.Equal(got, tc.released) {
				t.Errorf("%s want %q released, got %q", tc.reason, tc.released, got)
			}
			obj := &metav1.ObjectMeta{Finalizers: tc.have}
			if us.HasFinalizer(obj) != slices.Equal(tc.have, tc.protected) || !slices.Equal(tc.have, before) {
				t.Errorf("%s HasFinalizer is %v of %q", tc.reason, us.HasFinalizer(obj), tc.have)
			}
		})
	}
}

func TestJudge(t *testing.T) {
	us := Hub{ID: "us", Name: "we"}
	ids := func(ids ...Identity) []Identity { return ids }
	for name, tc := range map[string]struct {
		reason   string
		have     *Marker
		takeOver Identity
		verdict  Verdict
		before   []Identity
	}{
		"None":             {reason: "No hub holds the cluster.", verdict: VerdictFree},
		"NoneWithConsent":  {reason: "What the lost hub left is ours.", takeOver: "them", verdict: VerdictFree, before: ids("them")},
		"Ours":             {reason: "We have it.", have: &Marker{Holder: us, Predecessors: ids("old")}, verdict: VerdictHeld, before: ids("old")},
		"OursWithConsent":  {reason: "A consent that comes later counts, too.", have: &Marker{Holder: us}, takeOver: "them", verdict: VerdictFree, before: ids("them")},
		"OursConsentUsed":  {reason: "It is written once.", have: &Marker{Holder: us, Predecessors: ids("them")}, takeOver: "them", verdict: VerdictHeld, before: ids("them")},
		"OursFromOurself":  {reason: "A consent to ourselves means nothing.", have: &Marker{Holder: us}, takeOver: "us", verdict: VerdictHeld},
		"Released":         {reason: "Who released it left things.", have: &Marker{Predecessors: ids("them", "us", "old")}, verdict: VerdictFree, before: ids("them", "old")},
		"Other":            {reason: "They have it.", have: &Marker{Holder: Hub{ID: "them"}}, verdict: VerdictOther},
		"OtherWithConsent": {reason: "A user consented to the takeover.", have: &Marker{Holder: Hub{ID: "them"}, Predecessors: ids("old")}, takeOver: "them", verdict: VerdictFree, before: ids("them", "old")},
		"OtherConsentElse": {reason: "The consent is about another hub.", have: &Marker{Holder: Hub{ID: "them"}}, takeOver: "old", verdict: VerdictOther},
		"TakenBack":        {reason: "They took it back since: the consent is used up.", have: &Marker{Holder: Hub{ID: "them"}, Predecessors: ids("us")}, takeOver: "them", verdict: VerdictOther},
		"Foreign":          {reason: "It cannot be read who has it.", have: &Marker{Foreign: true}, takeOver: "them", verdict: VerdictOther},
	} {
		t.Run(name, func(t *testing.T) {
			verdict, want := Judge(tc.have, us, tc.takeOver)
			if verdict != tc.verdict {
				t.Fatalf("%s want %s, got %s", tc.reason, tc.verdict, verdict)
			}
			if diff := cmp.Diff(tc.before, want.Predecessors); diff != "" {
				t.Errorf("%s predecessors: -want +got:\n%s", tc.reason, diff)
			}
			if verdict != VerdictOther && want.Holder != us {
				t.Errorf("%s want us to hold it, got %v", tc.reason, want.Holder)
			}
		})
	}
}

func TestMarkersSurviveBeingWrittenAndRead(t *testing.T) {
	for name, m := range map[string]Marker{
		"Held":      {Holder: Hub{ID: "us", Name: "Production (EU)"}},
		"TakenOver": {Holder: Hub{ID: "us"}, Predecessors: []Identity{"a", "b"}},
		"Released":  ReleasedMarker(Marker{Holder: Hub{ID: "us", Name: "x"}, Predecessors: []Identity{"a"}}),
	} {
		t.Run(name, func(t *testing.T) {
			before := &metav1.ObjectMeta{UID: "1", ResourceVersion: "2", Labels: map[string]string{"team": "a", fleetv1alpha1.HubLabel: "old"},
				Annotations: map[string]string{fleetv1alpha1.HubNameAnnotation: "old", fleetv1alpha1.HubPredecessorsAnnotation: "old"}}
			metadata, _ := m.Object(before)["metadata"].(map[string]any)
			labels, _ := metadata["labels"].(map[string]string)
			annotations, _ := metadata["annotations"].(map[string]string)
			if diff := cmp.Diff(m, GetMarker(&metav1.ObjectMeta{Labels: labels, Annotations: annotations})); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			if metadata["resourceVersion"] != "2" || metadata["uid"] != "1" || labels["team"] != "a" {
				t.Errorf("want it to replace what was read, and to keep what others wrote, got %v", metadata)
			}
		})
	}
}

// FuzzGetMarker reads what the owner of a workload cluster can write.
func FuzzGetMarker(f *testing.F) {
	f.Add("us", "we", "a,b")
	f.Add("A\n", "\x00\"", ",,a,a, b ,us")
	f.Add(strings.Repeat("a", 300), strings.Repeat("b", 300), strings.Repeat("c,", 3000))
	f.Fuzz(func(t *testing.T, holder, name, before string) {
		m := GetMarker(&metav1.ObjectMeta{
			Labels:      map[string]string{fleetv1alpha1.HubLabel: holder},
			Annotations: map[string]string{fleetv1alpha1.HubNameAnnotation: name, fleetv1alpha1.HubPredecessorsAnnotation: before},
		})
		if len(m.Holder.String()) > 4*(MaxLength+MaxNameLength) || len(m.Predecessors) > maxPredecessors || slices.Contains(m.Predecessors, "") {
			t.Errorf("got %+v", m)
		}
		if holder != "" && m.Holder.ID == "" && !m.Foreign {
			t.Errorf("a holder that cannot be read passes for none: %q", holder)
		}
		if strings.ContainsAny(m.Holder.String(), "\n\r\x00") {
			t.Errorf("control characters: %q", m.Holder)
		}
	})
}
