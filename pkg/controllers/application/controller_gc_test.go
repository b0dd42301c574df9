// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package application

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appsv1alpha1 "github.com/masthead-dev/masthead/apis/apps/v1alpha1"
	"github.com/masthead-dev/masthead/internal/test/applicationtest"
	"github.com/masthead-dev/masthead/internal/test/testenv"
	"github.com/masthead-dev/masthead/pkg/controllers/application/record"
)

// collectGarbage runs the garbage collector of the real kube-controller-manager on the workload cluster.
func (f *fixture) collectGarbage() {
	f.T.Helper()
	kubeconfig := filepath.Join(f.T.TempDir(), "kubeconfig")
	if err := os.WriteFile(kubeconfig, f.lane.workload.KubeConfig, 0o600); err != nil {
		f.T.Fatal(err)
	}
	cmd := exec.Command(filepath.Join(f.lane.workload.BinaryAssetsDirectory, "kube-controller-manager"),
		"--kubeconfig="+kubeconfig, "--leader-elect=false", "--secure-port=0",
		"--controllers=garbage-collector-controller", "--concurrent-gc-syncs=2", "--kube-api-qps=200", "--kube-api-burst=400")
	var log bytes.Buffer
	cmd.Stdout, cmd.Stderr = &log, &log
	if err := cmd.Start(); err != nil {
		f.T.Fatalf("cannot start kube-controller-manager: %v", err)
	}
	f.T.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if f.T.Failed() {
			tail := log.Bytes()
			f.T.Logf("kube-controller-manager: %s", tail[max(0, len(tail)-4000):])
		}
	})
}

// collectorHasSeen waits until the garbage collector has processed all previous changes of ConfigMaps. It sees changes
// in order: once it deletes a ConfigMap created now, because its owner does not exist, it has seen the others.
func (f *fixture) collectorHasSeen() {
	f.T.Helper()
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Namespace: f.Namespace, GenerateName: "ownerless-",
		OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: "absent", UID: "of-absent"}},
	}}
	f.Create(f.Workload, cm)
	f.WaitForGone(f.Workload, cm)
}

// Components of a deleted Application are deleted, and nothing else.
func TestGarbageCollectionDeletesTheComponents(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.WaitForServed()
	f.collectGarbage()
	app := f.CreateApplication("shop", applicationtest.Components(applicationtest.ConfigMaps, "settings"))
	settings, more := f.CreateConfigMap("settings", "shop"), f.CreateConfigMap("more", "shop")
	f.WaitForOwned(settings, app, true)
	f.WaitForOwned(more, app, true)

	was := f.CreateConfigMap("was", "shop")
	f.WaitForOwned(was, app, true)
	f.Edit(f.Workload, was, func() { was.Labels["app"] = "another" })
	f.WaitForOwned(was, app, false)

	stranger := f.CreateConfigMap("stranger", "shop", func(cm *corev1.ConfigMap) { cm.Annotations = nil })
	unlabelled := f.CreateConfigMap("unlabelled", "shop", func(cm *corev1.ConfigMap) { cm.Labels = nil })
	owner := f.CreateConfigMap("owner", "absent")
	shared := f.CreateConfigMap("shared", "shop", func(cm *corev1.ConfigMap) {
		cm.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: "owner", UID: owner.UID}}
	})
	f.WaitForOwned(shared, app, true)

	f.Delete(f.Workload, app)
	f.WaitForGone(f.Workload, app)
	f.WaitForGone(f.Workload, settings)
	f.WaitForGone(f.Workload, more)
	f.Within("the reference to what is gone goes", func() error {
		if err := f.Workload.Get(f.Ctx, client.ObjectKeyFromObject(shared), shared); err != nil {
			return err
		}
		if applicationtest.IsOwned(shared, app) {
			return errors.New("it is there")
		}
		return nil
	})
	for _, obj := range []client.Object{was, stranger, unlabelled, owner, shared} {
		if err := f.Workload.Get(f.Ctx, client.ObjectKeyFromObject(obj), obj); err != nil {
			t.Errorf("want %q to stay: %v", obj.GetName(), err)
		}
	}
}

// An Application deleted with the orphan policy releases its components, and does not adopt them again.
func TestGarbageCollectionOrphansTheComponents(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.WaitForServed()
	f.collectGarbage()
	app := f.CreateApplication("shop", applicationtest.Components(applicationtest.ConfigMaps, "settings"))
	settings := f.CreateConfigMap("settings", "shop")
	f.WaitForOwned(settings, app, true)
	f.collectorHasSeen()
	if err := f.Workload.Delete(f.Ctx, app, client.PropagationPolicy(metav1.DeletePropagationOrphan)); err != nil {
		t.Fatal(err)
	}
	f.WaitForGone(f.Workload, app)
	f.WaitForOwned(settings, app, false)
	f.WaitForIdle()
	f.WaitForOwned(settings, app, false)
}

func TestGarbageCollectionInTheForeground(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.WaitForServed()
	f.collectGarbage()
	app := f.CreateApplication("shop", applicationtest.Components(applicationtest.ConfigMaps, "settings"))
	settings := f.CreateConfigMap("settings", "shop")
	f.WaitForOwned(settings, app, true)
	f.WaitForInstalled(app, "settings")
	if err := f.Workload.Delete(f.Ctx, app, client.PropagationPolicy(metav1.DeletePropagationForeground)); err != nil {
		t.Fatal(err)
	}
	f.WaitForGone(f.Workload, settings)
	f.WaitForGone(f.Workload, app)
}

// An object with a controller is deleted with it, and does not outlive it because the Application owns it, too.
func TestGarbageCollectionLeavesWhatHasAControllerToIt(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.WaitForServed()
	f.collectGarbage()
	kinds := applicationtest.Components(appsv1alpha1.ComponentKind{Group: "batch", Version: "v1", Kind: "CronJob"}, "backup")
	kinds["backup-1"] = appsv1alpha1.ComponentKind{Group: "batch", Version: "v1", Kind: "Job"}
	pod := corev1.PodTemplateSpec{Spec: corev1.PodSpec{
		RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{{Name: "c", Image: "example.org/c"}},
	}}
	cron := &batchv1.CronJob{ObjectMeta: f.MemberMeta("backup", "shop"), Spec: batchv1.CronJobSpec{
		Schedule: "0 0 1 1 *", JobTemplate: batchv1.JobTemplateSpec{Spec: batchv1.JobSpec{Template: pod}},
	}}
	f.Create(f.Workload, cron)
	app := f.CreateApplication("shop", kinds)
	f.WaitForOwned(cron, app, true)
	// The result of Kustomize's commonAnnotations: the template has the annotation, and so have the objects that are
	// created from it.
	job := func(name string, owners ...metav1.OwnerReference) *batchv1.Job {
		j := &batchv1.Job{ObjectMeta: f.MemberMeta(name, "shop"), Spec: batchv1.JobSpec{Template: pod}}
		j.OwnerReferences = append(owners, metav1.OwnerReference{ //nolint:gocritic // The other slice is left as it is.
			APIVersion: "batch/v1", Kind: "CronJob", Name: cron.Name, UID: cron.UID, Controller: new(true),
		})
		f.Create(f.Workload, j)
		return j
	}
	first := job("backup-1")
	second := job("backup-2", metav1.OwnerReference{APIVersion: "apps.masthead.dev/v1alpha1", Kind: "Application", Name: app.Name, UID: app.UID})
	f.WaitForStatus(app, func(s appsv1alpha1.ApplicationStatus) error {
		if s.ComponentsInstalled != "2/2" || s.Counts == nil || s.Counts.Selected != 3 {
			return errors.New("want the Jobs to be selected, and the one that is named to be installed")
		}
		if got := applicationtest.FormatCondition(s, appsv1alpha1.ConditionComponentsWatched); got != "True Watched" {
			return fmt.Errorf("got %q", got)
		}
		return nil
	})
	f.WaitForOwned(second, app, false)
	f.WaitForIdle()
	f.WaitForOwned(first, app, false)
	f.Delete(f.Workload, cron)
	f.WaitForGone(f.Workload, first)
	f.WaitForGone(f.Workload, second)
}

// An Application being orphaned while hundreds of objects are adopted adopts no more of them: objects that reference a
// deleted Application would be deleted.
func TestGarbageCollectionOrphansTheComponentsDuringAdoption(t *testing.T) {
	t.Parallel()
	const objects, before = maxWrites, 20
	f := newFixture(t, func(o *Options) { o.RequestTimeout = 2 * time.Minute })
	f.WaitForServed()
	f.collectGarbage()
	var maps []*corev1.ConfigMap
	for i := range objects {
		maps = append(maps, f.CreateConfigMap(fmt.Sprintf("settings-%d", i), "shop"))
	}
	f.collectorHasSeen()
	path := "/api/v1/namespaces/" + f.Namespace + "/configmaps/"
	key := record.ApplicationKey{Namespace: f.Namespace, Name: "shop"}
	w, _ := f.reconciler.workloads.Get(f.Cluster)
	deleted := make(chan error, 1)
	var patched atomic.Int32
	f.Traffic.SetAfter(func(req *http.Request) {
		if req.Method != http.MethodPatch || !strings.HasPrefix(req.URL.Path, path) || patched.Add(1) != before {
			return
		}
		app := &appsv1alpha1.Application{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}
		err := f.Workload.Delete(f.Ctx, app, client.PropagationPolicy(metav1.DeletePropagationOrphan))
		deleted <- errors.Join(err, testenv.Poll(f.Ctx, testenv.Patience, func(context.Context) (bool, error) {
			return w.Application(key) == nil, nil
		}))
	})
	app := f.CreateApplication("shop", applicationtest.Components(applicationtest.ConfigMaps, "settings-0"))
	if err := <-deleted; err != nil {
		t.Fatalf("the Application is not orphaned: %v", err)
	}
	f.WaitForIdle()
	f.Traffic.SetAfter(nil)
	f.collectorHasSeen()
	for _, cm := range maps {
		if err := f.Workload.Get(f.Ctx, client.ObjectKeyFromObject(cm), cm); err != nil {
			t.Fatalf("want every object to stay: %v", err)
		}
		if applicationtest.IsOwned(cm, app) {
			t.Fatalf("want no reference to an Application that is gone, %q has one", cm.Name)
		}
	}
}

// While the collector orphans the components, Masthead releases them as well: the collector may not know the last
// adopted ones. No collector runs here.
func TestGarbageCollectionOrphansWhatWasAdoptedLast(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	app := f.CreateApplication("shop", applicationtest.Components(applicationtest.ConfigMaps, "settings"))
	settings := f.CreateConfigMap("settings", "shop")
	f.WaitForOwned(settings, app, true)
	f.WaitForInstalled(app, "settings")
	if err := f.Workload.Delete(f.Ctx, app, client.PropagationPolicy(metav1.DeletePropagationOrphan)); err != nil {
		t.Fatal(err)
	}
	f.WaitForOwned(settings, app, false)
	late := f.CreateConfigMap("late", "shop", func(cm *corev1.ConfigMap) {
		cm.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps.masthead.dev/v1alpha1", Kind: "Application", Name: app.Name, UID: app.UID}}
	})
	f.WaitForOwned(late, app, false)
	f.WaitForIdle()
	f.WaitForOwned(settings, app, false)
	f.Edit(f.Workload, app, func() { app.Finalizers = nil })
	f.WaitForGone(f.Workload, app)
}
