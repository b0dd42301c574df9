// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package appstatus

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	appsv1alpha1 "github.com/masthead-dev/masthead/apis/apps/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/condition"
	"github.com/masthead-dev/masthead/pkg/controllers/application/healthcheck"
	"github.com/masthead-dev/masthead/pkg/controllers/application/record"
	"github.com/masthead-dev/masthead/pkg/health"
)

func statusTime(minutes int) metav1.Time {
	return metav1.NewTime(time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC).Add(time.Duration(minutes) * time.Minute))
}

var aStatefulSet = appsv1alpha1.ComponentKind{Group: "apps", Version: "v1", Kind: "StatefulSet"}

// component is a component that was found, with its own health.
func component(name string, h appsv1alpha1.Health, modify ...func(*ComponentView)) ComponentView {
	v := ComponentView{Name: name, Kind: aStatefulSet, Installed: true, Found: &record.Component{Health: health.Result{Health: h}}}
	if h != appsv1alpha1.HealthHealthy {
		v.Found.Health.Reason, v.Found.Health.Message = "Because", "It is so."
	}
	for _, m := range modify {
		m(&v)
	}
	return v
}

// foundElsewhere is a component that was discovered in another namespace.
func foundElsewhere(name string, h appsv1alpha1.Health) ComponentView {
	return component(name, h, func(v *ComponentView) {
		v.discovered, v.Namespace, v.Kind.Name = true, "shared", name
	})
}

func ignored(v *ComponentView)  { v.Found.Ignored = true }
func missing(v *ComponentView)  { v.Found, v.Installed = nil, false }
func deleting(v *ComponentView) { v.Found.Deleting = true }
func unmatched(v *ComponentView) {
	v.Installed = false
}

func notSeen(reason string) func(*ComponentView) {
	return func(v *ComponentView) {
		missing(v)
		v.Unseen = &condition.Error{Reason: reason, Message: "It cannot be watched."}
	}
}

func asFinishedJob(v *ComponentView) {
	v.Kind, v.Found.Finished = appsv1alpha1.ComponentKind{Group: "batch", Version: "v1", Kind: "Job"}, true
}

func notOwned(v *ComponentView) {
	v.Problem = &condition.Error{Reason: appsv1alpha1.ReasonOwnershipForbidden, Message: "Masthead may not patch it."}
}

// unobserved is the reason why an Application in an un-enrolled cluster is not observed.
var unobserved = condition.Error{Reason: appsv1alpha1.ReasonNotEnrolled, Message: "The cluster is not enrolled any more."}

func observed(modify ...func(*Observation)) Observation {
	o := Observation{Application: &appsv1alpha1.Application{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "wordpress", UID: "1", Generation: 3},
	}}
	for _, m := range modify {
		m(&o)
	}
	return o
}

func with(components ...ComponentView) func(*Observation) {
	return func(o *Observation) { o.Components = components }
}

func dependingOn(views ...DependencyView) func(*Observation) {
	return func(o *Observation) { o.Dependencies = views }
}

func checked(ready corev1.ConditionStatus, p *condition.Error) func(*Observation) {
	return func(o *Observation) {
		o.Application.Spec.HealthCheck = &appsv1alpha1.ApplicationHealthCheck{}
		o.HealthCheck = healthcheck.View{Pod: "wordpress-abc", Ready: ready, Problem: p}
	}
}

func TestStatusOfOneComponent(t *testing.T) {
	cases := map[string]struct {
		reason    string
		component ComponentView
		want      appsv1alpha1.ComponentStatus
	}{
		"Healthy": {
			reason:    "It is there and well.",
			component: component("db", appsv1alpha1.HealthHealthy),
			want:      appsv1alpha1.ComponentStatus{Installed: corev1.ConditionTrue, Health: appsv1alpha1.HealthHealthy},
		},
		"Degraded": {
			reason:    "What it says of itself is repeated.",
			component: component("db", appsv1alpha1.HealthDegraded),
			want: appsv1alpha1.ComponentStatus{
				Installed: corev1.ConditionTrue, Health: appsv1alpha1.HealthDegraded, Reason: "Because", Message: "It is so.",
			},
		},
		"Missing": {
			reason:    "There is no such object with the annotation.",
			component: component("db", appsv1alpha1.HealthHealthy, missing),
			want: appsv1alpha1.ComponentStatus{
				Installed: corev1.ConditionFalse, Health: appsv1alpha1.HealthMissing, Reason: appsv1alpha1.ReasonNotFound,
				Message: `There is no StatefulSet "db" with the annotation kubernetes.io/application.`,
			},
		},
		"MissingUnderAnotherName": {
			reason: "The message names the object, not the component.",
			component: component("db", appsv1alpha1.HealthHealthy, missing, func(v *ComponentView) {
				v.Kind.Name = "mysql"
			}),
			want: appsv1alpha1.ComponentStatus{
				Installed: corev1.ConditionFalse, Health: appsv1alpha1.HealthMissing, Reason: appsv1alpha1.ReasonNotFound,
				Message: `There is no StatefulSet "mysql" with the annotation kubernetes.io/application.`,
			},
		},
		"LabelsDoNotMatch": {
			reason:    "It exists but does not belong to the Application, so its health does not count.",
			component: component("db", appsv1alpha1.HealthHealthy, unmatched),
			want: appsv1alpha1.ComponentStatus{
				Installed: corev1.ConditionFalse, Health: appsv1alpha1.HealthMissing, Reason: appsv1alpha1.ReasonLabelsDoNotMatch,
				Message: `The labels of the StatefulSet "db" do not match the selector.`,
			},
		},
		"OtherProblem": {
			reason: "The selection may report a more specific problem.",
			component: component("db", appsv1alpha1.HealthHealthy, unmatched, func(v *ComponentView) {
				v.Problem = &condition.Error{Reason: appsv1alpha1.ReasonClusterScoped, Message: "It has no namespace."}
			}),
			want: appsv1alpha1.ComponentStatus{
				Installed: corev1.ConditionFalse, Health: appsv1alpha1.HealthMissing, Reason: appsv1alpha1.ReasonClusterScoped,
				Message: "It has no namespace.",
			},
		},
		"NotSeen": {
			reason:    "What cannot be seen is not missing.",
			component: component("db", appsv1alpha1.HealthHealthy, notSeen(appsv1alpha1.ReasonKindForbidden)),
			want: appsv1alpha1.ComponentStatus{
				Installed: corev1.ConditionUnknown, Health: appsv1alpha1.HealthUnknown, Reason: appsv1alpha1.ReasonKindForbidden,
				Message: "It cannot be watched.",
			},
		},
		"NotOwned": {
			reason:    "It is well, and its user must learn that it would not be deleted.",
			component: component("db", appsv1alpha1.HealthHealthy, notOwned),
			want: appsv1alpha1.ComponentStatus{
				Installed: corev1.ConditionTrue, Health: appsv1alpha1.HealthHealthy, Reason: appsv1alpha1.ReasonOwnershipForbidden,
				Message: "Masthead may not patch it.",
			},
		},
		"NotOwnedAndDegraded": {
			reason:    "What is broken is worse.",
			component: component("db", appsv1alpha1.HealthDegraded, notOwned),
			want: appsv1alpha1.ComponentStatus{
				Installed: corev1.ConditionTrue, Health: appsv1alpha1.HealthDegraded, Reason: "Because", Message: "It is so.",
			},
		},
		"Terminating": {
			reason:    "An object without a health of its own is on its way out, too.",
			component: component("db", appsv1alpha1.HealthHealthy, deleting),
			want: appsv1alpha1.ComponentStatus{
				Installed: corev1.ConditionTrue, Health: appsv1alpha1.HealthProgressing, Reason: appsv1alpha1.ReasonTerminating,
				Message: "It is being deleted.",
			},
		},
		"Ignored": {
			reason:    "Its health is shown all the same.",
			component: component("db", appsv1alpha1.HealthDegraded, ignored),
			want: appsv1alpha1.ComponentStatus{
				Installed: corev1.ConditionTrue, Health: appsv1alpha1.HealthDegraded, Ignored: true, Reason: "Because", Message: "It is so.",
			},
		},
		"HealthThatMeansNothing": {
			reason:    "The API server would refuse the whole status.",
			component: component("db", "Splendid"),
			want: appsv1alpha1.ComponentStatus{
				Installed: corev1.ConditionTrue, Health: appsv1alpha1.HealthUnknown, Reason: "Because", Message: "It is so.",
			},
		},
		"FoundAndMissing": {
			reason:    "Whether it is there is not for its health to say.",
			component: component("db", appsv1alpha1.HealthMissing),
			want: appsv1alpha1.ComponentStatus{
				Installed: corev1.ConditionTrue, Health: appsv1alpha1.HealthUnknown, Reason: "Because", Message: "It is so.",
			},
		},
		"ControlCharacters": {
			reason: "A message of the cluster must not move the cursor of who reads it.",
			component: component("db", appsv1alpha1.HealthDegraded, func(v *ComponentView) {
				v.Found.Health.Message = "a\x1b[2Jb\nc\xff"
			}),
			want: appsv1alpha1.ComponentStatus{
				Installed: corev1.ConditionTrue, Health: appsv1alpha1.HealthDegraded, Reason: "Because", Message: "a [2Jb c\uFFFD",
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			tc.want.Name, tc.want.Group, tc.want.Version, tc.want.Kind = "db", "apps", "v1", "StatefulSet"
			if diff := cmp.Diff(tc.want, componentStatus(tc.component, appsv1alpha1.ComponentStatus{})); diff != "" {
				t.Errorf("%s\n-want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// A Job that its ttlSecondsAfterFinished has deleted stays Healthy for as long as the spec names it, even if the
// watch restarts meanwhile. Its entry is all that is left of it.
func TestAJobThatHasFinished(t *testing.T) {
	const healthy, progressing, unknown = appsv1alpha1.HealthHealthy, appsv1alpha1.HealthProgressing, appsv1alpha1.HealthUnknown
	asJob := func(v *ComponentView) {
		v.Kind = appsv1alpha1.ComponentKind{Group: "batch", Version: "v1", Kind: "Job"}
	}
	renamed := func(v *ComponentView) { v.Kind.Name = "migrate-2" }
	limited := func(v *ComponentView) { v.Found.Finished = true }
	found := func(v *ComponentView) { v.discovered, v.Namespace, v.Kind.Name = true, "shop", v.Name }
	job := func(h appsv1alpha1.Health, change ...func(*ComponentView)) ComponentView {
		return component("migrate", h, append([]func(*ComponentView){asJob}, change...)...)
	}
	running, complete := job(progressing), job(healthy, limited)
	gone := job(healthy, missing)
	for name, tc := range map[string]struct {
		reason string
		steps  []ComponentView
		want   string // Of the last step.
	}{
		"Deleted":      {"It has done what it is for.", []ComponentView{running, complete, gone}, "True/Healthy Finished"},
		"BeingDeleted": {"The deletion is no change.", []ComponentView{complete, job(progressing, limited, deleting)}, "True/Healthy Finished"},
		"SeenLate":     {"It was being deleted when it was first seen.", []ComponentView{job(progressing, limited, deleting), gone}, "True/Healthy Finished"},
		"ForLong":      {"Nothing forgets it.", []ComponentView{complete, gone, gone, gone}, "True/Healthy Finished"},
		"Ignored":      {"It is still left out of the health.", []ComponentView{job(healthy, limited, ignored), gone}, "True/Healthy Finished ignored"},
		"Discovered": {
			"An inventory of Flux goes on naming it.", []ComponentView{job(healthy, limited, found), job(healthy, found, missing)}, "True/Healthy Finished",
		},
		"NotOwned": {
			"A right is missing, and then the object.", []ComponentView{job(healthy, limited, notOwned), gone}, "True/Healthy Finished",
		},
		"NotOwnedShown": {"The right is missing still.", []ComponentView{job(healthy, limited, notOwned)}, "True/Healthy OwnershipForbidden"},
		"NotSeen": {
			"Whether there is another one is unknown.", []ComponentView{complete, gone, job(healthy, notSeen(appsv1alpha1.ReasonKindForbidden))},
			"Unknown/Unknown KindForbidden",
		},
		"SeenAgain": {
			"What cannot be seen for a while is not forgotten.", []ComponentView{
				complete, job(healthy, notSeen(appsv1alpha1.ReasonKindForbidden)), job(unknown, notSeen(appsv1alpha1.ReasonKindStale)), gone,
			},
			"True/Healthy Finished",
		},
		"WithoutLimit": {"Only a client can have deleted it.", []ComponentView{job(healthy), gone}, "False/Missing NotFound"},
		"NeverEnded":   {"It has not completed.", []ComponentView{running, gone}, "False/Missing NotFound"},
		"Failed":       {"It has not completed.", []ComponentView{job(appsv1alpha1.HealthDegraded), gone}, "False/Missing NotFound"},
		"NeverThere":   {"It was never observed.", []ComponentView{gone}, "False/Missing NotFound"},
		"Again":        {"There is another one.", []ComponentView{complete, gone, running}, "True/Progressing Because"},
		"AgainAndGone": {"The other one has not completed.", []ComponentView{complete, gone, running, gone}, "False/Missing NotFound"},
		"NameChanged":  {"The spec names another object.", []ComponentView{complete, job(healthy, renamed, missing)}, "False/Missing NotFound"},
		"KindChanged":  {"The spec names another kind.", []ComponentView{complete, component("migrate", healthy, missing)}, "False/Missing NotFound"},
		"Unmatched":    {"It does not belong to the Application.", []ComponentView{job(healthy, limited, unmatched), gone}, "False/Missing NotFound"},
	} {
		t.Run(name, func(t *testing.T) {
			o := observed()
			for i, step := range tc.steps {
				o.Application.Generation++ // Other changes of the spec do not matter.
				o.Components = []ComponentView{step}
				o.Application.Status = stored(t, Build(o, statusTime(i)))
			}
			s := o.Application.Status
			all := s.Components
			if s.Discovered != nil {
				all = []appsv1alpha1.ComponentStatus{{Installed: s.Discovered[0].Installed, Health: s.Discovered[0].Health, Reason: s.Discovered[0].Reason}}
			}
			got := string(all[0].Installed) + "/" + string(all[0].Health) + " " + all[0].Reason
			if all[0].Ignored {
				got += " ignored"
			}
			if got != tc.want {
				t.Errorf("%s Want %s, got %s (%s)", tc.reason, tc.want, got, all[0].Message)
			}
		})
	}
}

// Kubernetes records no failure of a CronJob: while the next run is under way, what became of the one before is in the
// status alone. Neither does one that failed become Healthy, nor do those that work change with each run.
func TestACronJobKeepsItsHealthDuringARun(t *testing.T) {
	library, err := health.NewLibrary()
	if err != nil {
		t.Fatal(err)
	}
	assess := func(status string) ComponentView {
		cronJob := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(`{apiVersion: batch/v1, kind: CronJob, metadata: {name: backup}, status: `+status+`}`), cronJob); err != nil {
			t.Fatal(err)
		}
		return component("backup", appsv1alpha1.HealthHealthy, func(v *ComponentView) {
			v.Kind = appsv1alpha1.ComponentKind{Group: "batch", Version: "v1", Kind: "CronJob"}
			v.Found.Health = library.New().Assess(cronJob, true)
		})
	}
	const succeeded, failed = `{lastScheduleTime: "2026-01-02T03:00:00Z", lastSuccessfulTime: "2026-01-02T03:00:12Z"}`,
		`{lastScheduleTime: "2026-01-03T03:00:00Z", lastSuccessfulTime: "2026-01-02T03:00:12Z"}`
	const running = `{lastScheduleTime: "2026-01-04T03:00:00Z", lastSuccessfulTime: "2026-01-02T03:00:12Z", active: [{name: x}]}`
	const progressing, healthy, degraded = appsv1alpha1.HealthProgressing, appsv1alpha1.HealthHealthy, appsv1alpha1.HealthDegraded
	for name, tc := range map[string]struct {
		reason string
		steps  []string
		want   appsv1alpha1.Health
	}{
		"First":     {"Nothing is known of it.", []string{running}, progressing},
		"Works":     {"It has not failed.", []string{succeeded, running, running}, healthy},
		"Failed":    {"It has not succeeded.", []string{failed, running, running}, degraded},
		"Mended":    {"It has.", []string{failed, running, succeeded}, healthy},
		"FailedNow": {"It has failed.", []string{succeeded, running, failed}, degraded},
	} {
		t.Run(name, func(t *testing.T) {
			o := observed()
			for i, step := range tc.steps {
				o.Components = []ComponentView{assess(step)}
				o.Application.Status = stored(t, Build(o, statusTime(i)))
			}
			if got := o.Application.Status.Components[0]; got.Health != tc.want || got.Message == "" && tc.want != healthy {
				t.Errorf("%s Want %s, got %+v", tc.reason, tc.want, got)
			}
		})
	}
}

// More components than a status lists do not crowd out what is left of a Job.
func TestAJobThatHasFinishedIsListed(t *testing.T) {
	for _, h := range []appsv1alpha1.Health{appsv1alpha1.HealthHealthy, appsv1alpha1.HealthDegraded} {
		o := observed()
		for i := range 2 * appsv1alpha1.MaxStatusEntries {
			o.Components = append(o.Components, component(fmt.Sprint("a", i), h))
		}
		job := component("migrate", appsv1alpha1.HealthHealthy, asFinishedJob)
		for i := range 3 {
			o.Components = append(o.Components[:2*appsv1alpha1.MaxStatusEntries], job)
			o.Application.Status = stored(t, Build(o, statusTime(i)))
			missing(&job)
		}
		s := o.Application.Status
		if last := s.Components[len(s.Components)-1]; s.Health != h || len(s.Components) != appsv1alpha1.MaxStatusEntries || last.Reason != appsv1alpha1.ReasonFinished {
			t.Errorf("want it to be listed last of %d entries, got %s, %d, %+v", appsv1alpha1.MaxStatusEntries, s.Health, len(s.Components), last)
		}
	}
}

func TestHealthIsThatOfTheWorst(t *testing.T) {
	order := []appsv1alpha1.Health{
		appsv1alpha1.HealthHealthy, appsv1alpha1.HealthSuspended, appsv1alpha1.HealthProgressing,
		appsv1alpha1.HealthUnknown, appsv1alpha1.HealthMissing, appsv1alpha1.HealthDegraded,
	}
	view := func(name string, h appsv1alpha1.Health) ComponentView {
		if h == appsv1alpha1.HealthMissing {
			return component(name, h, missing)
		}
		return component(name, h)
	}
	for i, a := range order {
		for j, b := range order {
			got := Build(observed(with(view("a", a), view("b", b))), statusTime(0))
			want := order[max(i, j)]
			if got.Health != want {
				t.Errorf("%s and %s: want %s, got %s", a, b, want, got.Health)
			}
			if first := got.Components[0].Health; first != want {
				t.Errorf("%s and %s: the worst comes first: want %s, got %s", a, b, want, first)
			}
		}
	}
}

// wanted is the status of a condition, and its reason.
type wanted struct {
	status metav1.ConditionStatus
	reason string
}

func TestConditions(t *testing.T) {
	const (
		yes, no, unknown = metav1.ConditionTrue, metav1.ConditionFalse, metav1.ConditionUnknown
		healthy          = appsv1alpha1.HealthHealthy
	)
	db := component("db", healthy)
	there := DependencyView{name: "mysql", status: &appsv1alpha1.ApplicationStatus{}}
	cases := map[string]struct {
		reason                             string
		observation                        Observation
		installed, check, healthy, watched wanted
		message                            string
	}{
		"AllIsWell": {
			reason:      "Everything is there and well, and the health check says so.",
			observation: observed(with(db), dependingOn(there), checked(corev1.ConditionTrue, nil)),
			installed:   wanted{yes, "Installed"}, check: wanted{yes, "HealthCheckReady"},
			healthy: wanted{yes, "Healthy"}, watched: wanted{yes, "Watched"},
		},
		"NoHealthCheck": {
			reason:      "The KEP wants Unknown then; it is not reported as a problem.",
			observation: observed(with(db)),
			installed:   wanted{yes, "Installed"}, check: wanted{unknown, "NoHealthCheck"},
			healthy: wanted{yes, "Healthy"}, watched: wanted{yes, "Watched"},
		},
		"NoComponents": {
			reason:      "Nothing is not healthy.",
			observation: observed(),
			installed:   wanted{unknown, "NoComponents"}, check: wanted{unknown, "NoHealthCheck"},
			healthy: wanted{unknown, "NoComponents"}, watched: wanted{yes, "Watched"},
			message: "The Application has no components.",
		},
		"AllIgnored": {
			reason:      "If nothing counts, nothing is known.",
			observation: observed(with(component("db", appsv1alpha1.HealthDegraded, ignored))),
			installed:   wanted{yes, "Installed"}, check: wanted{unknown, "NoHealthCheck"},
			healthy: wanted{unknown, "NoComponents"}, watched: wanted{yes, "Watched"},
			message: "Every component is excluded from the health by its annotation.",
		},
		"IgnoredAndHealthy": {
			reason:      "What is ignored does not count.",
			observation: observed(with(db, component("cache", appsv1alpha1.HealthDegraded, ignored))),
			installed:   wanted{yes, "Installed"}, check: wanted{unknown, "NoHealthCheck"},
			healthy: wanted{yes, "Healthy"}, watched: wanted{yes, "Watched"},
		},
		"Missing": {
			reason:      "A missing component is not healthy.",
			observation: observed(with(db, component("web", healthy, missing))),
			installed:   wanted{no, "ComponentsMissing"}, check: wanted{unknown, "NoHealthCheck"},
			healthy: wanted{no, "ComponentsMissing"}, watched: wanted{yes, "Watched"},
			message: `StatefulSet "web" is Missing: There is no StatefulSet "web" with the annotation kubernetes.io/application.`,
		},
		"DependencyMissing": {
			reason:      "The components can be well without it.",
			observation: observed(with(db), dependingOn(DependencyView{name: "mysql"})),
			installed:   wanted{no, "DependenciesMissing"}, check: wanted{unknown, "NoHealthCheck"},
			healthy: wanted{yes, "Healthy"}, watched: wanted{yes, "Watched"},
			message: `Dependencies that are not installed: "mysql".`,
		},
		"DependencyMissingWithoutComponents": {
			reason:      "What is known to be missing is said.",
			observation: observed(dependingOn(DependencyView{name: "mysql"})),
			installed:   wanted{no, "DependenciesMissing"}, check: wanted{unknown, "NoHealthCheck"},
			healthy: wanted{unknown, "NoComponents"}, watched: wanted{yes, "Watched"},
			message: `The Application has no components. Dependencies that are not installed: "mysql".`,
		},
		"DependencyNotSeen": {
			reason:      "It may be there.",
			observation: observed(with(db), dependingOn(DependencyView{name: "mysql", unseen: true})),
			installed:   wanted{unknown, "ComponentsNotWatched"}, check: wanted{unknown, "NoHealthCheck"},
			healthy: wanted{yes, "Healthy"}, watched: wanted{yes, "Watched"},
		},
		"NotServed": {
			reason:      "A kind that is not served shows on its component, and holds up no other one.",
			observation: observed(with(db, component("w", healthy, notSeen(appsv1alpha1.ReasonKindNotServed)))),
			installed:   wanted{unknown, "ComponentsNotWatched"}, check: wanted{unknown, "NoHealthCheck"},
			healthy: wanted{unknown, "ComponentsNotWatched"}, watched: wanted{no, "KindNotServed"},
			message: `StatefulSet "w" is Unknown: It cannot be watched.`,
		},
		"NotServedAndDegraded": {
			reason:      "What is known to be broken is worse than what is not known.",
			observation: observed(with(component("x", appsv1alpha1.HealthDegraded), component("w", healthy, notSeen(appsv1alpha1.ReasonKindNotServed)))),
			installed:   wanted{unknown, "ComponentsNotWatched"}, check: wanted{unknown, "NoHealthCheck"},
			healthy: wanted{no, "ComponentsDegraded"}, watched: wanted{no, "KindNotServed"},
			message: `StatefulSet "x" is Degraded: It is so. 1 more is not healthy.`,
		},
		"SyncingAndForbidden": {
			reason:      "What an administrator has to fix comes before what passes by itself.",
			observation: observed(with(component("a", healthy, notSeen(appsv1alpha1.ReasonSyncing)), component("b", healthy, notSeen(appsv1alpha1.ReasonKindForbidden)))),
			installed:   wanted{unknown, "ComponentsNotWatched"}, check: wanted{unknown, "NoHealthCheck"},
			healthy: wanted{unknown, "ComponentsNotWatched"}, watched: wanted{no, "KindForbidden"},
			message: `StatefulSet "a" is Unknown: It cannot be watched. 1 more is not healthy.`,
		},
		"Syncing": {
			reason:      "It is not known yet.",
			observation: observed(with(component("a", healthy, notSeen(appsv1alpha1.ReasonSyncing)))),
			installed:   wanted{unknown, "ComponentsNotWatched"}, check: wanted{unknown, "NoHealthCheck"},
			healthy: wanted{unknown, "ComponentsNotWatched"}, watched: wanted{no, "Syncing"},
			message: `StatefulSet "a" is Unknown: It cannot be watched.`,
		},
		"NotOwned": {
			reason:      "The right that is missing is for an administrator to see.",
			observation: observed(with(component("a", healthy, notOwned))),
			installed:   wanted{yes, "Installed"}, check: wanted{unknown, "NoHealthCheck"},
			healthy: wanted{yes, "Healthy"}, watched: wanted{no, "OwnershipForbidden"},
		},
		"UnknownByItself": {
			reason:      "It was seen, and says nothing that can be understood.",
			observation: observed(with(component("a", appsv1alpha1.HealthUnknown))),
			installed:   wanted{yes, "Installed"}, check: wanted{unknown, "NoHealthCheck"},
			healthy: wanted{unknown, "ComponentsUnknown"}, watched: wanted{yes, "Watched"},
			message: `StatefulSet "a" is Unknown: It is so.`,
		},
		"Suspended": {
			reason:      "It is paused on purpose, and not working.",
			observation: observed(with(component("a", appsv1alpha1.HealthSuspended))),
			installed:   wanted{yes, "Installed"}, check: wanted{unknown, "NoHealthCheck"},
			healthy: wanted{no, "ComponentsSuspended"}, watched: wanted{yes, "Watched"},
			message: `StatefulSet "a" is Suspended: It is so.`,
		},
		"Progressing": {
			reason:      "It is on its way.",
			observation: observed(with(component("a", appsv1alpha1.HealthProgressing))),
			installed:   wanted{yes, "Installed"}, check: wanted{unknown, "NoHealthCheck"},
			healthy: wanted{no, "ComponentsProgressing"}, watched: wanted{yes, "Watched"},
			message: `StatefulSet "a" is Progressing: It is so.`,
		},
		"NotReady": {
			reason:      "The health check knows better than the components.",
			observation: observed(with(db), checked(corev1.ConditionFalse, nil)),
			installed:   wanted{yes, "Installed"}, check: wanted{no, "HealthCheckNotReady"},
			healthy: wanted{yes, "Healthy"}, watched: wanted{yes, "Watched"},
			message: "The health check's Pod is not ready.",
		},
		"Starting": {
			reason:      "A Pod without the condition Ready is Unknown, as the KEP says.",
			observation: observed(with(db), checked(corev1.ConditionUnknown, nil)),
			installed:   wanted{yes, "Installed"}, check: wanted{unknown, "HealthCheckStarting"},
			healthy: wanted{yes, "Healthy"}, watched: wanted{yes, "Watched"},
			message: "The health check's Pod does not report yet whether it is ready.",
		},
		"HealthCheckRefused": {
			reason:      "There is no Pod, and the API server says why.",
			observation: observed(with(db), checked(corev1.ConditionUnknown, &condition.Error{Reason: appsv1alpha1.ReasonHealthCheckRefused, Message: "Refused: no."})),
			installed:   wanted{yes, "Installed"}, check: wanted{unknown, "HealthCheckRefused"},
			healthy: wanted{yes, "Healthy"}, watched: wanted{yes, "Watched"},
			message: "Refused: no.",
		},
		"ReadyThatMeansNothing": {
			reason:      "The API server would refuse the whole status.",
			observation: observed(with(db), checked("Maybe", nil)),
			installed:   wanted{yes, "Installed"}, check: wanted{unknown, "HealthCheckStarting"},
			healthy: wanted{yes, "Healthy"}, watched: wanted{yes, "Watched"},
			message: "The health check's Pod does not report yet whether it is ready.",
		},
		"NotEnrolled": {
			reason:      "What was true at the last observation is not shown as if it were true now.",
			observation: UnseenApplication(leftBehind(), unobserved),
			installed:   wanted{unknown, "ComponentsNotWatched"}, check: wanted{unknown, "NotEnrolled"},
			healthy: wanted{unknown, "ComponentsNotWatched"}, watched: wanted{no, "NotEnrolled"},
			message: `The cluster is not enrolled any more.`,
		},
		"NotEnrolledAndEmpty": {
			reason:      "One without components is not watched either.",
			observation: UnseenApplication(observed().Application, condition.Error{Reason: appsv1alpha1.ReasonNotEnrolled, Message: "The cluster is not enrolled any more."}),
			installed:   wanted{unknown, "NoComponents"}, check: wanted{unknown, "NoHealthCheck"},
			healthy: wanted{unknown, "NoComponents"}, watched: wanted{no, "NotEnrolled"},
			message: `The cluster is not enrolled any more.`,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			status := Build(tc.observation, statusTime(0))
			for conditionType, want := range map[string]wanted{
				appsv1alpha1.ConditionInstalled: tc.installed, appsv1alpha1.ConditionHealthCheckPassed: tc.check,
				appsv1alpha1.ConditionHealthy: tc.healthy, appsv1alpha1.ConditionComponentsWatched: tc.watched,
			} {
				c := meta.FindStatusCondition(status.Conditions, conditionType)
				if c == nil {
					t.Errorf("%s\nthere is no condition %s", tc.reason, conditionType)
					continue
				}
				if got := (wanted{c.Status, c.Reason}); got != want {
					t.Errorf("%s\n%s: want %v, got %v (%s)", tc.reason, conditionType, want, got, c.Message)
				}
				if c.ObservedGeneration != 3 {
					t.Errorf("%s: want generation 3, got %d", conditionType, c.ObservedGeneration)
				}
			}
			if status.Message != tc.message {
				t.Errorf("%s\nmessage: want %q, got %q", tc.reason, tc.message, status.Message)
			}
		})
	}
}

// leftBehind is an Application with the status that it had when its cluster was still enrolled.
func leftBehind() *appsv1alpha1.Application {
	o := observed(with(component("db", appsv1alpha1.HealthHealthy)), checked(corev1.ConditionTrue, nil))
	o.Application.Spec.Components = map[string]appsv1alpha1.ComponentKind{"db": aStatefulSet}
	o.Application.Status = Build(o, statusTime(0))
	return o.Application
}
