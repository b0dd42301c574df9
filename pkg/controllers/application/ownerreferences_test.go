// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package application

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	testingclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appsv1alpha1 "github.com/masthead-dev/masthead/apis/apps/v1alpha1"
	"github.com/masthead-dev/masthead/internal/test/applicationtest"
	"github.com/masthead-dev/masthead/internal/test/controllertest"
	"github.com/masthead-dev/masthead/pkg/condition"
	"github.com/masthead-dev/masthead/pkg/controllers/application/record"
	"github.com/masthead-dev/masthead/pkg/kindwatch"
)

func TestGarbageCollectionAddsAnOwnerReferenceToAnExistingObject(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.WaitForServed()
	cm := f.CreateConfigMap("settings", "shop")
	app := f.CreateApplication("shop", applicationtest.Components(applicationtest.ConfigMaps, "settings"))
	f.WaitForOwned(cm, app, true)
	want := metav1.OwnerReference{APIVersion: "apps.masthead.dev/v1alpha1", Kind: "Application", Name: "shop", UID: app.UID}
	if got := cm.OwnerReferences; len(got) != 1 || got[0] != want {
		t.Errorf("want %+v, got %+v", want, got)
	}
	f.WaitForInstalled(app, "settings")
}

func TestGarbageCollectionAddsAnOwnerReferenceToANewObject(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	app := f.CreateApplication("shop", applicationtest.Components(applicationtest.ConfigMaps, "settings"))
	f.WaitForStatus(app, func(s appsv1alpha1.ApplicationStatus) error {
		if got := applicationtest.FormatCondition(s, appsv1alpha1.ConditionInstalled); got != "False ComponentsMissing" {
			return fmt.Errorf("got %q", got)
		}
		return nil
	})
	f.WaitForOwned(f.CreateConfigMap("settings", "shop"), app, true)
	f.WaitForInstalled(app, "settings")
}

func TestGarbageCollectionOwnsObjectsThatAreNotNamed(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	app := f.CreateApplication("shop", applicationtest.Components(applicationtest.ConfigMaps, "settings"))
	f.WaitForOwned(f.CreateConfigMap("settings", "shop"), app, true)
	f.WaitForOwned(f.CreateConfigMap("more", "shop"), app, true)
	f.WaitForStatus(app, func(s appsv1alpha1.ApplicationStatus) error {
		if s.Counts == nil || s.Counts.Selected != 2 || s.ComponentsInstalled != "1/1" {
			return errors.New("want two selected, and one component")
		}
		return nil
	})
}

func TestGarbageCollectionKeepsOtherOwners(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	app := f.CreateApplication("shop", applicationtest.Components(applicationtest.ConfigMaps, "settings"))
	other := f.CreateConfigMap("owner", "absent")
	cm := f.CreateConfigMap("settings", "shop", func(cm *corev1.ConfigMap) {
		cm.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: "owner", UID: other.UID}}
	})
	f.WaitForOwned(cm, app, true)
	if len(cm.OwnerReferences) != 2 || cm.OwnerReferences[0].UID != other.UID {
		t.Errorf("want the other owner to stay, got %+v", cm.OwnerReferences)
	}
	f.Edit(f.Workload, cm, func() { cm.Labels["app"] = "another" })
	f.WaitForOwned(cm, app, false)
	if len(cm.OwnerReferences) != 1 || cm.OwnerReferences[0].UID != other.UID {
		t.Errorf("want the other owner to stay, got %+v", cm.OwnerReferences)
	}
}

func TestInstallationStatusReportingRemovesTheOwnerReference(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name, reason string
		change       func(*corev1.ConfigMap)
		component    string
	}{
		{
			name: "labels", reason: "The selector does not match the labels any more: the KEP says that the reference goes.",
			change:    func(cm *corev1.ConfigMap) { cm.Labels["app"] = "another" },
			component: "False/Missing LabelsDoNotMatch",
		},
		{
			name: "annotation", reason: "The annotation names no Application any more.",
			change:    func(cm *corev1.ConfigMap) { cm.Annotations = nil },
			component: "False/Missing NotFound",
		},
		{
			name: "other application", reason: "The annotation names another one, which is not there.",
			change: func(cm *corev1.ConfigMap) {
				cm.Annotations[appsv1alpha1.ApplicationAnnotation] = "another"
			},
			component: "False/Missing NotFound",
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			app := f.CreateApplication("shop", applicationtest.Components(applicationtest.ConfigMaps, "settings"))
			cm := f.CreateConfigMap("settings", "shop")
			f.WaitForOwned(cm, app, true)
			f.Edit(f.Workload, cm, func() { tc.change(cm) })
			f.WaitForOwned(cm, app, false)
			f.WaitForStatus(app, func(s appsv1alpha1.ApplicationStatus) error {
				if got := applicationtest.FormatComponent(s, "settings"); got != tc.component {
					return fmt.Errorf("%s: want %q, got %q", tc.reason, tc.component, got)
				}
				return nil
			})
		})
	}
}

func TestGarbageCollectionLetsGoOfAKindThatLeftTheSpec(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	kinds := applicationtest.Components(applicationtest.ConfigMaps, "settings")
	kinds["web"] = applicationtest.Services
	app := f.CreateApplication("shop", kinds)
	cm := f.CreateConfigMap("settings", "shop")
	svc := &corev1.Service{ObjectMeta: f.MemberMeta("web", "shop"), Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}}}
	f.Create(f.Workload, svc)
	f.WaitForOwned(cm, app, true)
	f.WaitForOwned(svc, app, true)
	f.WaitForInstalled(app, "settings", "web")

	f.Edit(f.Workload, app, func() { delete(app.Spec.Components, "web") })
	f.WaitForOwned(svc, app, false)
	f.WaitForInstalled(app, "settings")
	f.WaitForOwned(cm, app, true)
}

// A manager that was down during a change of the spec learns from the status what the Application named before.
func TestGarbageCollectionLetsGoOfAKindThatLeftTheSpecMeanwhile(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	kinds := applicationtest.Components(applicationtest.ConfigMaps, "settings")
	kinds["web"] = applicationtest.Services
	app := f.CreateApplication("shop", kinds)
	svc := &corev1.Service{ObjectMeta: f.MemberMeta("web", "shop"), Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}}}
	f.Create(f.Workload, svc)
	f.WaitForOwned(svc, app, true)
	f.WaitForInstalled(app, "web")

	f.stop()
	f.Edit(f.Workload, app, func() { delete(app.Spec.Components, "web") })
	f.start()
	f.WaitForOwned(svc, app, false)
	f.WaitForStatus(app, func(appsv1alpha1.ApplicationStatus) error { return nil })
}

func TestGarbageCollectionKeepsReferencesOfOtherUIDs(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	app := f.CreateApplication("shop", applicationtest.Components(applicationtest.ConfigMaps, "settings"))
	stale := metav1.OwnerReference{APIVersion: "apps.masthead.dev/v1alpha1", Kind: "Application", Name: "shop", UID: "an-older-one"}
	cm := f.CreateConfigMap("settings", "shop", func(cm *corev1.ConfigMap) { cm.OwnerReferences = []metav1.OwnerReference{stale} })
	f.WaitForOwned(cm, app, true)
	if len(cm.OwnerReferences) != 2 || cm.OwnerReferences[0] != stale {
		t.Errorf("want the reference of another UID to be left alone, got %+v", cm.OwnerReferences)
	}
}

// A component of a recreated Application has the reference to the old one until the garbage collector, which does not
// run here, has seen it; it gets the new one in addition.
func TestAdoptingExistingComponentsOfARecreatedApplication(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	app := f.CreateApplication("shop", applicationtest.Components(applicationtest.ConfigMaps, "settings"))
	cm := f.CreateConfigMap("settings", "shop")
	f.WaitForOwned(cm, app, true)
	f.Delete(f.Workload, app)
	again := f.CreateApplication("shop", applicationtest.Components(applicationtest.ConfigMaps, "settings"))
	f.WaitForOwned(cm, again, true)
	f.WaitForInstalled(again, "settings")
}

func TestAdoptingExistingComponents(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	app := f.CreateApplication("shop", applicationtest.Components(applicationtest.ConfigMaps, "settings"))
	cm := f.CreateConfigMap("settings", "shop", func(cm *corev1.ConfigMap) { cm.Annotations = nil })
	f.WaitForStatus(app, func(s appsv1alpha1.ApplicationStatus) error {
		if got := applicationtest.FormatComponent(s, "settings"); got != "False/Missing NotFound" {
			return fmt.Errorf("an object without the annotation belongs to no Application, got %q", got)
		}
		return nil
	})
	f.Edit(f.Workload, cm, func() { cm.Annotations = map[string]string{appsv1alpha1.ApplicationAnnotation: "shop"} })
	f.WaitForOwned(cm, app, true)
	f.WaitForInstalled(app, "settings")
}

// An Application is deleted, or made again, while the watch is behind. The write of its status fails, and nothing is
// adopted.
func TestGarbageCollectionAdoptsNothingForAnApplicationThatIsGone(t *testing.T) {
	t.Parallel()
	for _, owning := range []bool{false, true} {
		for _, again := range []bool{false, true} {
			t.Run(fmt.Sprintf("owning=%t again=%t", owning, again), func(t *testing.T) {
				t.Parallel()
				f := newFixture(t)
				kinds := applicationtest.Components(applicationtest.ConfigMaps, "first", "second")
				app := f.CreateApplication("shop", kinds)
				f.WaitForStatus(app, func(appsv1alpha1.ApplicationStatus) error { return nil })
				if owning {
					f.WaitForOwned(f.CreateConfigMap("first", "shop"), app, true)
					f.WaitForInstalled(app, "first")
				}
				f.WaitForIdle()
				release := f.Traffic.Hold(t, "/apis/apps.masthead.dev/v1alpha1/applications")
				defer release()
				gone := app.DeepCopy()
				f.Delete(f.Workload, app)
				f.WaitForGone(f.Workload, app)
				if again {
					f.CreateApplication("shop", kinds)
				}
				before := f.Traffic.Count()
				cm := f.CreateConfigMap("second", "shop")
				// A conflict is tried again, and a second attempt shows that the first has ended.
				f.Within("the status is written", func() error {
					want := map[bool]int{true: 2, false: 1}[again]
					got := f.Traffic.Since(before, http.MethodPatch)
					if n := len(slices.DeleteFunc(got, func(r string) bool { return !strings.HasSuffix(r, "/shop/status") })); n < want {
						return fmt.Errorf("want %d attempts, got %d", want, n)
					}
					return nil
				})
				if !again {
					f.WaitForIdle()
				}
				for _, r := range f.Traffic.Since(before, http.MethodPatch) {
					if strings.Contains(r, "/configmaps/") {
						t.Errorf("want nothing adopted, got %q", r)
					}
				}
				f.WaitForOwned(cm, gone, false)
			})
		}
	}
}

// Before adopting without a write of the status, Masthead asks the API server itself: a watch that is behind may show a
// deleted Application.
func TestGarbageCollectionAsksForTheApplicationBeforeItAdopts(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name, reason, body string
	}{
		{
			name: "another UID", reason: "The Application was recreated: what is adopted for the old one would be deleted.",
			body: `{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":{"name":"shop","uid":"another"}}`,
		},
		{
			name: "being deleted", reason: "The Application is on its way out, and its components must not be drawn in.",
			body: `{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":{"name":"shop","uid":"UID","deletionTimestamp":"2026-01-02T03:04:05Z"}}`,
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			app := f.CreateApplication("shop", applicationtest.Components(applicationtest.ConfigMaps, "settings"))
			cm := f.CreateConfigMap("settings", "shop")
			f.WaitForOwned(cm, app, true)
			f.WaitForInstalled(app, "settings")
			f.WaitForIdle()
			path := "/apis/apps.masthead.dev/v1alpha1/namespaces/" + f.Namespace + "/applications/shop"
			// A goroutine that waits for the status reads into app, while another one makes the answer.
			uid := string(app.UID)
			requested := make(chan struct{}, 100)
			f.Traffic.SetAnswer(func(req *http.Request) *http.Response {
				if req.Method != http.MethodGet || req.URL.Path != path {
					return nil
				}
				requested <- struct{}{}
				return controllertest.JSONAnswer(req, http.StatusOK, strings.ReplaceAll(tc.body, `"UID"`, `"`+uid+`"`))
			})
			before := f.Traffic.Count()
			f.Edit(f.Workload, cm, func() { cm.OwnerReferences = nil }) // The status does not change.
			f.Within("the Application is requested from the API server", func() error {
				if len(requested) == 0 {
					return errors.New("it was not")
				}
				return nil
			})
			f.WaitForIdle()
			if got := f.Traffic.Since(before, http.MethodPatch); len(got) > 0 {
				t.Errorf("%s Want no patch, got %q", tc.reason, got)
			}
			f.WaitForOwned(cm, app, false)
		})
	}
}

func TestGarbageCollectionRefusesClusterScopedKinds(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	kinds := applicationtest.Components(applicationtest.ConfigMaps, "settings")
	kinds["readers"] = appsv1alpha1.ComponentKind{Group: rbacv1.GroupName, Version: "v1", Kind: "ClusterRole"}
	app := f.CreateApplication("shop", kinds)
	role := &rbacv1.ClusterRole{ObjectMeta: f.MemberMeta(f.Namespace+"-readers", "shop")}
	role.Namespace = ""
	f.Create(f.Workload, role)
	t.Cleanup(func() { f.Delete(f.Workload, role) })
	f.WaitForOwned(f.CreateConfigMap("settings", "shop"), app, true)
	f.WaitForStatus(app, func(s appsv1alpha1.ApplicationStatus) error {
		if got := applicationtest.FormatComponent(s, "readers"); got != "Unknown/Unknown ClusterScoped" {
			return fmt.Errorf("got %q", got)
		}
		if got := applicationtest.FormatCondition(s, appsv1alpha1.ConditionComponentsWatched); got != "False ClusterScoped" {
			return fmt.Errorf("got %q", got)
		}
		return nil
	})
	f.WaitForIdle()
	f.WaitForOwned(role, app, false)
}

func TestGarbageCollectionLeavesOtherNamespacesAlone(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	elsewhere := f.Namespace + "-elsewhere"
	f.Create(f.Workload, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: elsewhere}})
	app := f.CreateApplication("shop", applicationtest.Components(applicationtest.ConfigMaps, "settings"))
	there := f.CreateConfigMap("settings", "shop", func(cm *corev1.ConfigMap) { cm.Namespace = elsewhere })
	here := f.CreateConfigMap("more", "shop")
	f.WaitForOwned(here, app, true)
	f.WaitForIdle()
	f.WaitForOwned(there, app, false)
	f.WaitForInstalled(app)
}

// A missing right affects only components of that kind, and is checked once for all of them.
func TestGarbageCollectionThatIsForbidden(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.Traffic.SetAnswer(func(req *http.Request) *http.Response {
		if req.Method != http.MethodPatch || !strings.Contains(req.URL.Path, "/configmaps/") {
			return nil
		}
		return controllertest.JSONAnswer(req, http.StatusForbidden, `{"kind":"Status","apiVersion":"v1","status":"Failure","code":403,"reason":"Forbidden",`+
			`"message":"configmaps \"settings\" is forbidden: User \"masthead\" cannot patch resource \"configmaps\" in API group \"\""}`)
	})
	kinds := applicationtest.Components(applicationtest.ConfigMaps, "a", "b", "c")
	kinds["web"] = applicationtest.Services
	app := f.CreateApplication("shop", kinds)
	for _, name := range []string{"a", "b", "c"} {
		f.CreateConfigMap(name, "shop")
	}
	svc := &corev1.Service{ObjectMeta: f.MemberMeta("web", "shop"), Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}}}
	f.Create(f.Workload, svc)
	f.WaitForOwned(svc, app, true)
	f.WaitForStatus(app, func(s appsv1alpha1.ApplicationStatus) error {
		if got := applicationtest.FormatCondition(s, appsv1alpha1.ConditionComponentsWatched); got != "False OwnershipForbidden" {
			return fmt.Errorf("got %q", got)
		}
		if s.ComponentsInstalled != "4/4" {
			return errors.New("they are installed all the same")
		}
		return nil
	})
	f.WaitForIdle()
	refused := 0
	for _, r := range f.Traffic.Since(0, http.MethodPatch) {
		if strings.Contains(r, "/configmaps/") {
			refused++
		}
	}
	if refused != 1 {
		t.Errorf("want one request for the kind, got %d", refused)
	}
}

// No event follows when a refusal is over, of an adoption or of a release.
func TestRefusedWriteIsRetriedWhenTheRefusalIsOver(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.Traffic.SetAnswer(func(req *http.Request) *http.Response {
		if req.Method != http.MethodPatch || !strings.Contains(req.URL.Path, "/configmaps/") {
			return nil
		}
		return controllertest.JSONAnswer(req, http.StatusForbidden,
			`{"kind":"Status","apiVersion":"v1","status":"Failure","code":403,"reason":"Forbidden","message":"denied"}`)
	})
	app := f.CreateApplication("shop", applicationtest.Components(applicationtest.ConfigMaps, "settings"))
	f.WaitForStatus(app, func(appsv1alpha1.ApplicationStatus) error { return nil })
	w, _ := f.reconciler.workloads.Get(f.Cluster)
	s, err := f.reconciler.newScope(w, client.ObjectKeyFromObject(app))
	if err != nil {
		t.Fatal(err)
	}
	o := object{
		kind: applicationtest.ConfigMapKind, Component: &record.Component{},
		entry: kindwatch.Entry{Key: types.NamespacedName{Namespace: f.Namespace, Name: "settings"}},
	}
	for verb, patch := range map[string][]jsonPatchOperation{"adopt": adoption(o, app), "release": releasing(o, app.UID)} {
		var wait condition.PendingError
		if err := s.write(f.Ctx, o, verb, patch); !errors.As(err, &wait) || wait.After <= 0 {
			t.Errorf("%s: want a wait until the refusal is over, got %v", verb, err)
		}
	}
}

// Concurrent changes of an object are not overwritten: the patch is for the observed version.
func TestGarbageCollectionDoesNotAdoptWhatHasChanged(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	app := f.CreateApplication("shop", applicationtest.Components(applicationtest.ConfigMaps, "settings"))
	f.WaitForStatus(app, func(appsv1alpha1.ApplicationStatus) error { return nil })
	cm := f.CreateConfigMap("settings", "shop", func(cm *corev1.ConfigMap) { cm.Annotations = nil })
	// The answer to a change of cm is read into cm while the other change is made.
	direct, same := f.Workload, cm.DeepCopy()
	once := make(chan struct{}, 1)
	once <- struct{}{}
	f.Traffic.SetAnswer(func(req *http.Request) *http.Response {
		if req.Method != http.MethodPatch || !strings.HasSuffix(req.URL.Path, "/configmaps/settings") {
			return nil
		}
		select {
		case <-once:
			// The annotation is removed between the read and the write.
			patch := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"annotations":null}}`))
			if err := direct.Patch(f.Ctx, same, patch); err != nil {
				t.Errorf("cannot change the object: %v", err)
			}
		default:
		}
		return nil
	})
	f.Edit(f.Workload, cm, func() { cm.Annotations = map[string]string{appsv1alpha1.ApplicationAnnotation: "shop"} })
	f.Within("the object is adopted in vain", func() error {
		if len(once) > 0 {
			return errors.New("it was not patched")
		}
		return nil
	})
	f.WaitForIdle()
	f.WaitForOwned(cm, app, false)
	if cm.Annotations != nil {
		t.Errorf("want nothing else to be written, got %v", cm.Annotations)
	}
}

// Concurrent changes of an object and a late watch do not prevent its adoption: a change outside the cached fields
// triggers no event.
func TestGarbageCollectionAdoptsAfterAConflictWhenTheWatchIsLate(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	app := f.CreateApplication("shop", applicationtest.Components(applicationtest.ConfigMaps, "settings"))
	f.WaitForStatus(app, func(appsv1alpha1.ApplicationStatus) error { return nil })
	w, _ := f.reconciler.workloads.Get(f.Cluster)
	key := client.ObjectKeyFromObject(app)
	direct := f.Workload
	var once sync.Once
	var release func()
	refused := make(chan time.Time, 1)
	f.Traffic.SetAnswer(func(req *http.Request) *http.Response {
		if req.Method == http.MethodPatch && strings.HasSuffix(req.URL.Path, "/configmaps/settings") {
			once.Do(func() {
				release = f.Traffic.Hold(t, "/api/v1/configmaps")
				cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: "settings"}}
				if err := direct.Patch(f.Ctx, cm, client.RawPatch(types.MergePatchType, []byte(`{"data":{"a":"b"}}`))); err != nil {
					t.Errorf("cannot change the object: %v", err)
				}
				refused <- f.reconciler.clock.Now()
			})
		}
		return nil
	})
	cm := f.CreateConfigMap("settings", "shop")
	at := <-refused
	f.Within("the Application is looked at again", func() error {
		if started, _, _ := w.LastLook(key); started.Sub(at) < catchUp {
			return fmt.Errorf("it was looked at %s later", started.Sub(at))
		}
		return nil
	})
	release()
	f.WaitForOwned(cm, app, true)
}

// The watch may be behind while a large Application is reconciled: the API server confirms once a second that it
// exists, and a deleted one adopts nothing more.
func TestGarbageCollectionAsksAgainWhetherTheApplicationIsThere(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	app := f.CreateApplication("shop", applicationtest.Components(applicationtest.ConfigMaps))
	f.WaitForStatus(app, func(appsv1alpha1.ApplicationStatus) error { return nil })
	w, _ := f.reconciler.workloads.Get(f.Cluster)
	release := f.Traffic.Hold(t, "/apis/apps.masthead.dev/v1alpha1/applications")
	defer release()
	clock := testingclock.NewFakeClock(time.Now())
	s := &scope{r: &reconciler{clock: clock}, w: w, key: client.ObjectKeyFromObject(app), app: app}
	var checkedAt time.Time
	if exists, err := s.exists(f.Ctx, &checkedAt); !exists {
		t.Fatalf("want the Application to adopt: %v", err)
	}
	f.Delete(f.Workload, app)
	f.WaitForGone(f.Workload, app)
	clock.Step(liveCheckEvery)
	if exists, _ := s.exists(f.Ctx, &checkedAt); exists {
		t.Error("want nothing adopted by an Application that has gone, although the watch does not say so yet")
	}
	if !w.IsThere(s.key, app.UID) {
		t.Error("the watch was not held back, and the test shows nothing")
	}
}

// A missing right in one namespace does not affect another one, nor is the API server's message about its objects shown
// there.
func TestGarbageCollectionThatIsForbiddenInOneNamespace(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	forbidden := f.Namespace + "-forbidden"
	f.Create(f.Workload, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: forbidden}})
	f.Traffic.SetAnswer(func(req *http.Request) *http.Response {
		if req.Method != http.MethodPatch || !strings.Contains(req.URL.Path, "/namespaces/"+forbidden+"/configmaps/") {
			return nil
		}
		return controllertest.JSONAnswer(req, http.StatusForbidden, `{"kind":"Status","apiVersion":"v1","status":"Failure","code":403,"reason":"Forbidden",`+
			`"message":"configmaps \"treasure\" is forbidden: User \"masthead\" cannot patch resource \"configmaps\" in API group \"\" in the namespace \"`+forbidden+`\""}`)
	})
	there := func(app *appsv1alpha1.Application) { app.Namespace = forbidden }
	theirs := f.CreateApplication("shop", applicationtest.Components(applicationtest.ConfigMaps, "treasure", "other"), there)
	t.Cleanup(func() { f.Delete(f.Workload, theirs) })
	for _, name := range []string{"treasure", "other"} {
		f.CreateConfigMap(name, "shop", func(cm *corev1.ConfigMap) { cm.Namespace = forbidden })
	}
	f.WaitForComponent(theirs, "treasure", "True/Healthy OwnershipForbidden")
	f.WaitForComponent(theirs, "other", "True/Healthy OwnershipForbidden")
	for _, c := range theirs.Status.Components {
		if !strings.Contains(c.Message, "lacks the right to patch") || strings.Contains(c.Message, "treasure") {
			t.Errorf("want the missing right to be named, and nothing about an object, got %q", c.Message)
		}
	}
	ours := f.CreateApplication("shop", applicationtest.Components(applicationtest.ConfigMaps, "settings"))
	cm := f.CreateConfigMap("settings", "shop")
	f.WaitForOwned(cm, ours, true)
	f.WaitForComponent(ours, "settings", "True/Healthy ")
}
