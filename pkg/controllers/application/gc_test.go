// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package application

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// collectGarbage runs the garbage collector of the real kube-controller-manager on the workload cluster.
func (f *fixture) collectGarbage() {
	f.t.Helper()
	kubeconfig := filepath.Join(f.t.TempDir(), "kubeconfig")
	if err := os.WriteFile(kubeconfig, workloadServer.KubeConfig, 0o600); err != nil {
		f.t.Fatal(err)
	}
	cmd := exec.Command(filepath.Join(workloadServer.BinaryAssetsDirectory, "kube-controller-manager"),
		"--kubeconfig="+kubeconfig, "--leader-elect=false", "--secure-port=0",
		"--controllers=garbage-collector-controller", "--concurrent-gc-syncs=2", "--kube-api-qps=200", "--kube-api-burst=400")
	var log bytes.Buffer
	cmd.Stdout, cmd.Stderr = &log, &log
	if err := cmd.Start(); err != nil {
		f.t.Fatalf("cannot start kube-controller-manager: %v", err)
	}
	f.t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if f.t.Failed() {
			tail := log.Bytes()
			f.t.Logf("kube-controller-manager: %s", tail[max(0, len(tail)-4000):])
		}
	})
}

// collectorHasSeen waits until the garbage collector has seen what was done to ConfigMaps so far, so that it knows what belongs to whom. It
// sees them in the order in which they change: when it deletes one that is made now, because its owner does not exist, it has seen the
// others.
func (f *fixture) collectorHasSeen() {
	f.t.Helper()
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Namespace: f.namespace, GenerateName: "ownerless-",
		OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: "nobody", UID: "of-nobody"}},
	}}
	f.create(f.workload, cm)
	f.gone(cm)
}

// gone waits until an object is gone.
func (f *fixture) gone(obj client.Object) {
	f.t.Helper()
	f.eventually(obj.GetName()+" is gone", func() error {
		err := f.workload.Get(f.ctx, client.ObjectKeyFromObject(obj), obj)
		if apierrors.IsNotFound(err) {
			return nil
		}
		return fmt.Errorf("it is there (%w)", err)
	})
}

// What was a component of the Application when that was deleted goes, and nothing else does.
func TestGarbageCollectionDeletesTheComponents(t *testing.T) {
	f := newFixture(t)
	f.served()
	f.collectGarbage()
	app := f.application("shop", components(configMaps, "settings"))
	settings, more := f.configMap("settings", "shop"), f.configMap("more", "shop")
	f.owned(settings, app, true)
	f.owned(more, app, true)

	was := f.configMap("was", "shop")
	f.owned(was, app, true)
	f.edit(was, func() { was.Labels["app"] = "another" })
	f.owned(was, app, false)

	stranger := f.configMap("stranger", "shop", func(cm *corev1.ConfigMap) { cm.Annotations = nil })
	unlabelled := f.configMap("unlabelled", "shop", func(cm *corev1.ConfigMap) { cm.Labels = nil })
	owner := f.configMap("owner", "nobody")
	shared := f.configMap("shared", "shop", func(cm *corev1.ConfigMap) {
		cm.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: "owner", UID: owner.UID}}
	})
	f.owned(shared, app, true)

	f.delete(app)
	f.gone(app)
	f.gone(settings)
	f.gone(more)
	f.eventually("the reference to what is gone goes", func() error {
		if err := f.workload.Get(f.ctx, client.ObjectKeyFromObject(shared), shared); err != nil {
			return err
		}
		if isOwned(shared, app) {
			return errors.New("it is there")
		}
		return nil
	})
	for _, obj := range []client.Object{was, stranger, unlabelled, owner, shared} {
		if err := f.workload.Get(f.ctx, client.ObjectKeyFromObject(obj), obj); err != nil {
			t.Errorf("want %q to stay: %v", obj.GetName(), err)
		}
	}
}

// An Application that is deleted so that its components stay lets go of them, and does not take them back.
func TestGarbageCollectionOrphansTheComponents(t *testing.T) {
	f := newFixture(t)
	f.served()
	f.collectGarbage()
	app := f.application("shop", components(configMaps, "settings"))
	settings := f.configMap("settings", "shop")
	f.owned(settings, app, true)
	f.collectorHasSeen()
	if err := f.workload.Delete(f.ctx, app, client.PropagationPolicy(metav1.DeletePropagationOrphan)); err != nil {
		t.Fatal(err)
	}
	f.gone(app)
	f.owned(settings, app, false)
	f.settled()
	f.owned(settings, app, false)
}

func TestGarbageCollectionInTheForeground(t *testing.T) {
	f := newFixture(t)
	f.served()
	f.collectGarbage()
	app := f.application("shop", components(configMaps, "settings"))
	settings := f.configMap("settings", "shop")
	f.owned(settings, app, true)
	f.installed(app, "settings")
	if err := f.workload.Delete(f.ctx, app, client.PropagationPolicy(metav1.DeletePropagationForeground)); err != nil {
		t.Fatal(err)
	}
	f.gone(settings)
	f.gone(app)
}
