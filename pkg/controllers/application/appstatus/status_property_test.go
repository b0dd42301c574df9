// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package appstatus

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	appsv1alpha1 "github.com/masthead-dev/masthead/apis/apps/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/condition"
	"github.com/masthead-dev/masthead/pkg/controllers/application/bounds"
	"github.com/masthead-dev/masthead/pkg/controllers/application/rollup"
)

// stored is a status as it comes back from an API server.
func stored(t *testing.T, s appsv1alpha1.ApplicationStatus) appsv1alpha1.ApplicationStatus {
	t.Helper()
	data, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	var back appsv1alpha1.ApplicationStatus
	if err := json.Unmarshal(data, &back); err != nil {
		t.Fatal(err)
	}
	return back
}

func TestStatusNamesAndCounts(t *testing.T) {
	o := observed(
		with(
			component("db", appsv1alpha1.HealthDegraded), component("web", appsv1alpha1.HealthHealthy),
			component("cache", appsv1alpha1.HealthHealthy, missing), component("cron", appsv1alpha1.HealthSuspended, ignored),
			component("w", appsv1alpha1.HealthHealthy, notSeen(appsv1alpha1.ReasonSyncing)),
			component("p", appsv1alpha1.HealthProgressing),
		),
		dependingOn(
			// A component and a dependency of the same name: both have to exist.
			DependencyView{name: "web", status: &appsv1alpha1.ApplicationStatus{Ready: corev1.ConditionTrue, Health: appsv1alpha1.HealthHealthy}},
			DependencyView{name: "db"},
			DependencyView{name: "mysql", status: &appsv1alpha1.ApplicationStatus{Ready: "Maybe", Health: "Splendid"}},
			DependencyView{name: "redis", unseen: true},
		),
		checked(corev1.ConditionTrue, nil),
		func(o *Observation) { o.Selected = 9 },
	)
	now := statusTime(0)
	got := Build(o, now)
	truncated := now.Rfc3339Copy()

	if want := []string{"cron", "mysql", "p", "web"}; !slices.Equal(got.Installed, want) {
		t.Errorf("installed: want %q, got %q", want, got.Installed)
	}
	want := &appsv1alpha1.ComponentCounts{
		Total: 6, Installed: 4, Selected: 9, Healthy: 1, Suspended: 1, Progressing: 1, Unknown: 1, Missing: 1, Degraded: 1, Ignored: 1,
	}
	if diff := cmp.Diff(want, got.Counts); diff != "" {
		t.Errorf("counts: -want +got:\n%s", diff)
	}
	if got.ComponentsInstalled != "4/6" || got.ObservedGeneration != 3 || got.Ready != corev1.ConditionTrue ||
		got.HealthCheckPod != "wordpress-abc" || got.Truncated || got.Health != appsv1alpha1.HealthDegraded {
		t.Errorf("unexpected status %+v", got)
	}
	var order []string
	for _, c := range got.Components {
		order = append(order, c.Name)
	}
	// An ignored component that is not healthy comes before the healthy ones, and after the unhealthy ones that count.
	if want := []string{"db", "cache", "w", "p", "cron", "web"}; !slices.Equal(order, want) {
		t.Errorf("order: want %q, got %q", want, order)
	}
	dependencies := []appsv1alpha1.DependencyStatus{
		{Name: "db", Installed: corev1.ConditionFalse, Since: &truncated},
		{Name: "redis", Installed: corev1.ConditionUnknown, Since: &truncated},
		{Name: "mysql", Installed: corev1.ConditionTrue, Ready: corev1.ConditionUnknown, Health: appsv1alpha1.HealthUnknown, Since: &truncated},
		{Name: "web", Installed: corev1.ConditionTrue, Ready: corev1.ConditionTrue, Health: appsv1alpha1.HealthHealthy, Since: &truncated},
	}
	if diff := cmp.Diff(dependencies, got.Dependencies); diff != "" {
		t.Errorf("dependencies: -want +got:\n%s", diff)
	}
}

func TestStatusWithoutAHealthCheckIsNotReadyOrUnready(t *testing.T) {
	o := observed(with(component("db", appsv1alpha1.HealthHealthy)))
	o.HealthCheck.Ready = corev1.ConditionTrue // This is from a Pod that is about to be removed.
	if got := Build(o, statusTime(0)).Ready; got != corev1.ConditionUnknown {
		t.Errorf("want Unknown, got %s", got)
	}
}

func TestTimesMoveWithWhatTheyAreAbout(t *testing.T) {
	o := observed(with(component("db", appsv1alpha1.HealthHealthy), component("web", appsv1alpha1.HealthHealthy)), dependingOn(DependencyView{name: "mysql"}))
	o.Application.Status = stored(t, Build(o, statusTime(0)))
	first := o.Application.Status

	// Another message or another reason is not another health.
	o.Components = []ComponentView{component("db", appsv1alpha1.HealthDegraded), component("web", appsv1alpha1.HealthHealthy)}
	o.Application.Status = stored(t, Build(o, statusTime(1)))
	o.Components[0].Found.Health.Message = "It is worse."
	second := Build(o, statusTime(2))

	since := func(s appsv1alpha1.ApplicationStatus, name string) metav1.Time {
		i := slices.IndexFunc(s.Components, func(c appsv1alpha1.ComponentStatus) bool { return c.Name == name })
		return *s.Components[i].Since
	}
	transition := func(s appsv1alpha1.ApplicationStatus, conditionType string) metav1.Time {
		return meta.FindStatusCondition(s.Conditions, conditionType).LastTransitionTime
	}
	for what, times := range map[string][2]metav1.Time{
		"the component that did not change":   {since(first, "web"), since(second, "web")},
		"the component that changed":          {statusTime(1).Rfc3339Copy(), since(second, "db")},
		"the dependency":                      {*first.Dependencies[0].Since, *second.Dependencies[0].Since},
		"the condition that did not change":   {transition(first, appsv1alpha1.ConditionInstalled), transition(second, appsv1alpha1.ConditionInstalled)},
		"the condition that changed":          {statusTime(1).Rfc3339Copy(), transition(second, appsv1alpha1.ConditionHealthy)},
		"the time of the first of everything": {statusTime(0).Rfc3339Copy(), since(first, "db")},
	} {
		if !times[0].Equal(&times[1]) {
			t.Errorf("%s: want %s, got %s", what, times[0], times[1])
		}
	}
	if second.Components[0].Message != "It is worse." {
		t.Errorf("the message must follow, got %q", second.Components[0].Message)
	}
}

func TestForeignConditionsStay(t *testing.T) {
	o := observed(with(component("db", appsv1alpha1.HealthHealthy)))
	foreign := metav1.Condition{Type: "Approved", Status: metav1.ConditionTrue, Reason: "Yes", LastTransitionTime: statusTime(-5).Rfc3339Copy()}
	o.Application.Status.Conditions = []metav1.Condition{foreign}
	got := Build(o, statusTime(0))
	if diff := cmp.Diff(&foreign, meta.FindStatusCondition(got.Conditions, "Approved")); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if len(o.Application.Status.Conditions) != 1 {
		t.Error("the status that was observed was changed")
	}
}

// randomObservation is a random observation, with so few names that a dependency, or a component of another
// observation, often has the name of a component. It sometimes has more components than a status lists.
func randomObservation(r *rand.Rand) Observation {
	healths := []appsv1alpha1.Health{
		appsv1alpha1.HealthHealthy, appsv1alpha1.HealthSuspended, appsv1alpha1.HealthProgressing, appsv1alpha1.HealthUnknown,
		appsv1alpha1.HealthDegraded, "", "Splendid",
	}
	changes := []func(*ComponentView){ignored, missing, deleting, unmatched, notOwned, notSeen(appsv1alpha1.ReasonSyncing), notSeen(appsv1alpha1.ReasonKindForbidden)}
	o := observed()
	for i := range r.IntN(100) {
		v := component(fmt.Sprintf("c%d", i), healths[r.IntN(len(healths))])
		if r.IntN(3) == 0 {
			changes[r.IntN(len(changes))](&v)
		}
		if r.IntN(4) == 0 {
			v.Kind = appsv1alpha1.ComponentKind{Group: "batch", Version: "v1", Kind: "Job"}
			if v.Found != nil {
				v.Found.Finished = r.IntN(2) == 0
			}
		}
		if r.IntN(4) == 0 {
			v.discovered, v.Namespace, v.Kind.Name = true, []string{"", "shop", "shared"}[r.IntN(3)], v.Name
		}
		o.Components = append(o.Components, v)
	}
	r.Shuffle(len(o.Components), func(i, j int) { o.Components[i], o.Components[j] = o.Components[j], o.Components[i] })
	for i := range r.IntN(5) {
		v := DependencyView{name: fmt.Sprintf("c%d", i), unseen: r.IntN(3) == 0}
		if !v.unseen && r.IntN(2) == 0 {
			v.status = &appsv1alpha1.ApplicationStatus{Health: healths[r.IntN(len(healths))]}
		}
		o.Dependencies = append(o.Dependencies, v)
	}
	switch r.IntN(4) {
	case 0:
		checked(corev1.ConditionTrue, nil)(&o)
	case 1:
		checked(corev1.ConditionFalse, nil)(&o)
	case 2:
		checked("", &condition.Error{Reason: appsv1alpha1.ReasonHealthCheckForbidden, Message: "No."})(&o)
	}
	return o
}

// isTruncated reports whether there are more of the named or of the discovered components than a status lists.
func isTruncated(o Observation) bool {
	discovered := 0
	for _, v := range o.Components {
		if v.discovered {
			discovered++
		}
	}
	return max(discovered, len(o.Components)-discovered) > appsv1alpha1.MaxStatusEntries
}

func TestStatusIsIdempotent(t *testing.T) {
	for seed := range uint64(500) {
		r := rand.New(rand.NewPCG(seed, 1))
		o := randomObservation(r)
		if r.IntN(2) == 0 {
			// It was in another state before.
			before := randomObservation(r)
			o.Application.Status = stored(t, Build(before, statusTime(0)))
		}
		input := stored(t, o.Application.Status)
		first := Build(o, statusTime(1))
		if diff := cmp.Diff(input, stored(t, o.Application.Status)); diff != "" {
			t.Fatalf("seed %d: the status that was observed was changed:\n%s", seed, diff)
		}
		o.Application.Status = stored(t, first)
		r.Shuffle(len(o.Components), func(i, j int) { o.Components[i], o.Components[j] = o.Components[j], o.Components[i] })
		second := Build(o, statusTime(60))
		if !Equal(o.Application.Status, second) {
			t.Fatalf("seed %d: the same observation led to another status:\n%s", seed, cmp.Diff(o.Application.Status, second))
		}
		if len(second.Components) > appsv1alpha1.MaxStatusEntries || second.Truncated != isTruncated(o) {
			t.Fatalf("seed %d: %d components of %d are listed, truncated: %t", seed, len(second.Components), len(o.Components), second.Truncated)
		}
	}
}

func TestStatusIsBounded(t *testing.T) {
	full := func(name int, text string, length int) appsv1alpha1.ApplicationStatus {
		long := func(i int) string { return fmt.Sprintf("%03d", i) + strings.Repeat("x", name-3) }
		o := observed(checked(corev1.ConditionFalse, &condition.Error{Reason: appsv1alpha1.ReasonHealthCheckRefused, Message: strings.Repeat(text, length)}))
		for i := range 256 {
			v := component(long(i), appsv1alpha1.HealthDegraded)
			v.Kind = appsv1alpha1.ComponentKind{Group: long(i), Version: strings.Repeat("v", min(name, 63)), Kind: strings.Repeat("K", min(name, 63))}
			v.Found.Health.Reason, v.Found.Health.Message = strings.Repeat("R", length), strings.Repeat(text, length)
			o.Components = append(o.Components, v)
			if i < 100 {
				v.discovered, v.Namespace, v.Kind.Name = true, strings.Repeat("n", 63), v.Name
				o.Components = append(o.Components, v)
			}
		}
		for i := range appsv1alpha1.MaxStatusEntries {
			o.Dependencies = append(o.Dependencies, DependencyView{name: "d" + long(i)[1:]})
		}
		return Build(o, statusTime(0))
	}
	cases := map[string]struct {
		reason string
		status appsv1alpha1.ApplicationStatus
		most   int
	}{
		"LongNames": {
			reason: "Names as long as those of Services, and messages and reasons as long as they can be.",
			status: full(63, "m", 1_000), most: 144 << 10,
		},
		"EverythingAsLongAsItCanBe": {
			reason: "The KEP's list of installed components alone has 256 names of 253 characters; an object can have 1.5 MiB.",
			status: full(253, "\U0001F30D", 100_000), most: 384 << 10,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			data, err := json.Marshal(tc.status)
			if err != nil {
				t.Fatal(err)
			}
			if len(data) > tc.most {
				t.Errorf("%s\nwant at most %d bytes, got %d", tc.reason, tc.most, len(data))
			}
			if len(tc.status.Components) != appsv1alpha1.MaxStatusEntries || !tc.status.Truncated || tc.status.Counts.Total != 356 ||
				len(tc.status.Discovered) != appsv1alpha1.MaxStatusEntries {
				t.Errorf("64 of 256 components and of 100 discovered ones are listed, and all are counted; got %d of %d, truncated: %t",
					len(tc.status.Components), tc.status.Counts.Total, tc.status.Truncated)
			}
			for _, c := range tc.status.Conditions {
				if n := len([]rune(c.Message)); n > bounds.Message {
					t.Errorf("condition %s: the message has %d characters", c.Type, n)
				}
			}
			if n := len([]rune(tc.status.Message)); n > bounds.Message {
				t.Errorf("the message has %d characters", n)
			}
		})
	}
}

func TestEqualStatus(t *testing.T) {
	base := func(modify func(*appsv1alpha1.ApplicationStatus)) appsv1alpha1.ApplicationStatus {
		s := Build(observed(with(component("db", appsv1alpha1.HealthHealthy))), statusTime(0))
		modify(&s)
		return s
	}
	cases := map[string]struct {
		reason string
		modify func(*appsv1alpha1.ApplicationStatus)
		want   bool
	}{
		"Same": {reason: "Nothing differs.", modify: func(*appsv1alpha1.ApplicationStatus) {}, want: true},
		"EmptyForNone": {
			reason: "An API server does not tell the two apart.", want: true,
			modify: func(s *appsv1alpha1.ApplicationStatus) { s.Dependencies = []appsv1alpha1.DependencyStatus{} },
		},
		"OtherTimeZone": {
			reason: "It is the same time.", want: true,
			modify: func(s *appsv1alpha1.ApplicationStatus) {
				local := metav1.NewTime(s.Components[0].Since.Local())
				s.Components[0].Since = &local
			},
		},
		"Message":    {reason: "Users read it.", modify: func(s *appsv1alpha1.ApplicationStatus) { s.Message = "x" }},
		"Generation": {reason: "It says that a change was seen.", modify: func(s *appsv1alpha1.ApplicationStatus) { s.ObservedGeneration++ }},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := Equal(base(func(*appsv1alpha1.ApplicationStatus) {}), base(tc.modify)); got != tc.want {
				t.Errorf("%s\nwant %t, got %t", tc.reason, tc.want, got)
			}
		})
	}
}

func TestSummarize(t *testing.T) {
	healthy := observed(with(component("db", appsv1alpha1.HealthHealthy), component("web", appsv1alpha1.HealthHealthy, missing)), checked(corev1.ConditionTrue, nil)).Application
	o := observed(with(component("db", appsv1alpha1.HealthHealthy), component("web", appsv1alpha1.HealthHealthy, missing)), checked(corev1.ConditionTrue, nil))
	healthy.Spec.Type, healthy.Spec.Version = "WordPress", "4.8\n"
	healthy.Status = Build(o, statusTime(0))
	fresh := &appsv1alpha1.Application{Spec: appsv1alpha1.ApplicationSpec{Components: map[string]appsv1alpha1.ComponentKind{"db": aStatefulSet}}}
	forged := fresh.DeepCopy()
	forged.Status = appsv1alpha1.ApplicationStatus{
		ObservedGeneration: 1, Health: "Splendid", Ready: "Maybe", Message: strings.Repeat("x\n", 1000),
		Counts: &appsv1alpha1.ComponentCounts{Total: 2, Installed: 1 << 30},
	}
	cases := map[string]struct {
		reason string
		app    *appsv1alpha1.Application
		want   rollup.Summary
	}{
		"Seen": {
			reason: "What its users read is what is summed up.", app: healthy,
			want: rollup.Summary{
				ApplicationType: "WordPress", Version: "4.8", Health: appsv1alpha1.HealthMissing, Ready: corev1.ConditionTrue, Wanted: 2, Installed: 1,
				Message: `StatefulSet "web" is Missing: There is no StatefulSet "web" with the annotation kubernetes.io/application.`,
			},
		},
		"NotSeenYet": {
			reason: "It is not healthy before Masthead has processed it.", app: fresh,
			want: rollup.Summary{Health: appsv1alpha1.HealthUnknown, Ready: corev1.ConditionUnknown, Wanted: 1, Message: "Masthead has not processed it yet."},
		},
		"Forged": {
			reason: "A user who can write the status of an Application must not break the report of the cluster.", app: forged,
			want: rollup.Summary{
				Health: appsv1alpha1.HealthUnknown, Ready: corev1.ConditionUnknown, Wanted: 2, Installed: 2,
				Message: strings.Repeat("x ", 63) + "x…",
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, Summarize(tc.app), cmp.AllowUnexported(rollup.Summary{})); diff != "" {
				t.Errorf("%s\n-want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestStatusOfAnUnobservedApplicationIsIdempotent(t *testing.T) {
	why := condition.Error{Reason: appsv1alpha1.ReasonNotEnrolled, Message: "The cluster is not enrolled any more."}
	for name, app := range map[string]*appsv1alpha1.Application{"Whole": leftBehind(), "Empty": observed().Application} {
		t.Run(name, func(t *testing.T) {
			app.Status = stored(t, Build(UnseenApplication(app, why), statusTime(1)))
			if second := Build(UnseenApplication(app, why), statusTime(60)); !Equal(app.Status, second) {
				t.Errorf("the same observation led to another status:\n%s", cmp.Diff(app.Status, second))
			}
		})
	}
}
