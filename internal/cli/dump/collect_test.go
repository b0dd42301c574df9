// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package dump

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/masthead-dev/masthead/internal/cli/fleet"
	"github.com/masthead-dev/masthead/pkg/reflection"
)

// fakeHub serves Pods and their logs, and no other kind.
type fakeHub struct {
	pods []*unstructured.Unstructured
	logs map[string]string
}

func (f *fakeHub) Mapping(kind schema.GroupVersionKind) (*meta.RESTMapping, error) {
	if kind.Kind != "Pod" {
		return nil, fleet.ErrNoSuchKind
	}
	return &meta.RESTMapping{
		Resource:         schema.GroupVersionResource{Version: "v1", Resource: "pods"},
		GroupVersionKind: corev1.SchemeGroupVersion.WithKind("Pod"),
	}, nil
}

func (f *fakeHub) Get(context.Context, schema.GroupVersionKind, client.ObjectKey) (*unstructured.Unstructured, error) {
	return nil, fleet.ErrNoSuchKind
}

func (f *fakeHub) List(context.Context, schema.GroupVersionKind, ...client.ListOption) ([]*unstructured.Unstructured, error) {
	return f.pods, nil
}

func (f *fakeHub) Log(_ context.Context, pod client.ObjectKey, o corev1.PodLogOptions) (io.ReadCloser, error) {
	name := pod.Name + "/" + o.Container
	if o.Previous {
		name += "/previous"
	}
	if text, ok := f.logs[name]; ok {
		return io.NopCloser(strings.NewReader(text)), nil
	}
	return nil, errors.New("the kubelet does not answer")
}

func parse(t *testing.T, document string) *unstructured.Unstructured {
	t.Helper()
	u := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(document), u); err != nil {
		t.Fatal(err)
	}
	return u
}

func TestLogs(t *testing.T) {
	hub := &fakeHub{
		pods: []*unstructured.Unstructured{parse(t, `
apiVersion: v1
kind: Pod
metadata: {name: masthead-0, namespace: masthead-system}
status:
  containerStatuses: [{name: manager, restartCount: 2}, {name: ../../side, restartCount: 0}, {name: mute, restartCount: 0}]`)},
		logs: map[string]string{
			"masthead-0/manager":          "connected\nclient said \x1b[31mpassword=hunter2\n",
			"masthead-0/manager/previous": "panic: -----BEGIN PRIVATE KEY-----\nhunter2\n-----END PRIVATE KEY-----\nbye\n",
			"masthead-0/../../side":       "side\n",
		},
	}
	folder := t.TempDir()
	archive, err := NewFolder(folder)
	if err != nil {
		t.Fatal(err)
	}
	index, err := Collect(t.Context(), hub, archive, Options{Tail: 10, Metrics: func(context.Context) (io.ReadCloser, error) {
		return io.NopCloser(strings.NewReader("masthead_ready 1\n")), nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"manager":          "connected\nclient said password=<removed>\n",
		"manager.previous": "panic: <removed>\nbye\n",
		".._.._side":       "side\n",
	} {
		got, err := os.ReadFile(filepath.Join(folder, "logs", "masthead-system", "masthead-0", name+".log"))
		if err != nil || string(got) != want {
			t.Errorf("want the log %s to be %q, got %q %v", name, want, got, err)
		}
	}
	if got, err := os.ReadFile(filepath.Join(folder, "metrics.txt")); err != nil || string(got) != "masthead_ready 1\n" {
		t.Errorf("want the metrics, got %q %v", got, err)
	}
	missing := map[string]string{}
	for _, m := range index.NotLookedAt {
		missing[m.What] = m.Message
	}
	if missing["log of masthead-system/masthead-0 mute"] != "the kubelet does not answer" || missing["EnrollmentClass.fleet.masthead.dev"] == "" {
		t.Errorf("what could not be looked at is in the index, got %v", missing)
	}
	if _, ok := missing["Provider.pkg.crossplane.io"]; ok {
		t.Error("a kind that a hub need not have is not missed")
	}
}

// importHub is a hub with one managed resource of an import.
type importHub struct {
	fakeHub
	managed *unstructured.Unstructured
}

func (f *importHub) Mapping(kind schema.GroupVersionKind) (*meta.RESTMapping, error) {
	if kind.GroupKind() != reflection.EKSCluster.Namespaced() {
		return nil, fleet.ErrNoSuchKind
	}
	return &meta.RESTMapping{
		Resource:         schema.GroupVersionResource{Group: kind.Group, Version: "v1beta1", Resource: "clusters"},
		GroupVersionKind: f.managed.GroupVersionKind(),
	}, nil
}

func (f *importHub) List(_ context.Context, _ schema.GroupVersionKind, options ...client.ListOption) ([]*unstructured.Unstructured, error) {
	o := &client.ListOptions{}
	o.ApplyOptions(options)
	if o.LabelSelector == nil || !o.LabelSelector.Matches(labels.Set(f.managed.GetLabels())) {
		return nil, nil
	}
	return []*unstructured.Unstructured{f.managed}, nil
}

// TestImportIsRecorded: what a real provider observed can be compared with what Masthead expects of it, and holds no
// credentials.
func TestImportIsRecorded(t *testing.T) {
	hub := &importHub{managed: parse(t, `
apiVersion: eks.aws.m.upbound.io/v1beta1
kind: Cluster
metadata:
  name: shop
  namespace: customers
  labels: {fleet.masthead.dev/import-uid: "1"}
  annotations: {someone.example.org/note: hunter2}
spec: {managementPolicies: [Observe], forProvider: {region: eu-central-1}}
status:
  atProvider:
    version: "1.31"
    tags: {note: hunter2}
    nodeConfig: [{metadata: {startup-script: hunter2}, nodeLabels: {note: hunter2}, password: ",hunter2 "}]
  conditions: [{type: Synced, status: "True"}]
  hunter2: hunter2`)}
	folder := t.TempDir()
	archive, err := NewFolder(folder)
	if err != nil {
		t.Fatal(err)
	}
	noMetrics := func(context.Context) (io.ReadCloser, error) { return nil, errors.New("there are none") }
	if _, err := Collect(t.Context(), hub, archive, Options{Metrics: noMetrics}); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(filepath.Join(folder, "objects", "clusters.eks.aws.m.upbound.io.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`version: "1.31"`, "- Observe", "type: Synced"} {
		if !strings.Contains(string(got), want) {
			t.Errorf("want %q in %s", want, got)
		}
	}
	if strings.Contains(string(got), "hunter2") {
		t.Errorf("want no credentials in %s", got)
	}
}

func TestTarHasOneFolder(t *testing.T) {
	var b bytes.Buffer
	at := time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)
	archive := NewTar(&b, "dump", at)
	if err := errors.Join(archive.Add("./a.yaml", []byte("a")), archive.Add("logs/b.log", []byte("b")), archive.Close()); err != nil {
		t.Fatal(err)
	}
	compressed, err := gzip.NewReader(&b)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for r := tar.NewReader(compressed); ; {
		header, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if !header.ModTime.Equal(at) || header.Mode != 0o600 {
			t.Errorf("want the dump's time and mode, got %v %o", header.ModTime, header.Mode)
		}
		names = append(names, header.Name)
	}
	if got := strings.Join(names, " "); got != "dump/a.yaml dump/logs/b.log" {
		t.Errorf("everything is in one folder, got %s", got)
	}
}

func TestFileName(t *testing.T) {
	for in, want := range map[string]string{
		"pods": "pods", "..": "_..", "": "_", "../x": ".._x", "a/b\\c": "a_b_c", "x.db.test.dev": "x.db.test.dev",
	} {
		if got := fileName(in); got != want {
			t.Errorf("want %q for %q, got %q", want, in, got)
		}
	}
}
