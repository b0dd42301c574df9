// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"errors"
	"io"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"
)

// planted are objects with a secret in every place where a user may have put one. NS is the namespace.
func planted() []string {
	return []string{
		`{apiVersion: v1, kind: Secret, metadata: {name: w2, namespace: NS, labels: {masthead.dev/enroll: NS}, annotations: {
  note.test.dev/password: hunter2, kubectl.kubernetes.io/last-applied-configuration: '{"data":{"kubeconfig":"hunter2"}}'}}, stringData: {kubeconfig: hunter2}}`,
		`{apiVersion: v1, kind: Secret, metadata: {name: certs, namespace: NS, labels: {app.kubernetes.io/name: masthead}}, stringData: {tls.key: hunter2}}`,
		`{apiVersion: v1, kind: ConfigMap, metadata: {name: dashboards, namespace: NS, labels: {app.kubernetes.io/name: masthead}}, data: {a: hunter2}}`,
		`{apiVersion: apps/v1, kind: Deployment, metadata: {name: masthead, namespace: NS, labels: {app.kubernetes.io/name: masthead}},
 spec: {selector: {matchLabels: {a: NS}}, template: {metadata: {labels: {a: NS}, annotations: {a: hunter2}}, spec: {containers: [{name: manager, image: 'masthead:dev',
  args: [--leader-elect, --token=hunter2], env: [{name: PASSWORD, value: hunter2}]}]}}}}`,
		`{apiVersion: v1, kind: Pod, metadata: {name: masthead-0, namespace: NS, labels: {app.kubernetes.io/name: masthead}}, spec: {nodeName: nowhere, containers: [{name: manager, image: 'masthead:dev',
  command: [sh, -c, hunter2], args: [--log-level=debug, --token=hunter2, hunter2], env: [{name: PASSWORD, value: hunter2}],
  livenessProbe: {httpGet: {port: 1, httpHeaders: [{name: Authorization, value: hunter2}]}}}]},
 status: {containerStatuses: [{name: manager, image: 'masthead:dev', imageID: x, ready: false, restartCount: 1, lastState: {terminated: {exitCode: 1, message: 'token=hunter2'}}}]}}`,
		`{apiVersion: cluster.x-k8s.io/v1beta2, kind: Cluster, metadata: {name: w3, namespace: NS, annotations: {note.test.dev/password: hunter2}},
 spec: {topology: {classRef: {name: c}, version: v1.36.3, variables: [{name: password, value: hunter2}]}}}`,
		`{apiVersion: apiextensions.crossplane.io/v1, kind: CompositeResourceDefinition, metadata: {name: claims.NS},
 spec: {group: db.test.dev, claimNames: {kind: Database, plural: databases}, names: {kind: XDatabase, plural: xdatabases}, versions: [{name: v1, served: true, referenceable: true,
  schema: {openAPIV3Schema: {type: object, properties: {password: {type: string, default: hunter2}}}}}]}, status: {conditions: [{type: Established, status: "True"}, {type: Offered, status: "True"}]}}`,
		`{apiVersion: db.test.dev/v1, kind: Database, metadata: {name: sql, namespace: NS, annotations: {agent.crossplane.io/source-uid: NS-w1,
  agent.crossplane.io/source-namespace: NS}}, spec: {password: hunter2}, status: {conditions: [{type: Ready, status: "False", message: 'dial https://root:hunter2@db'}]}}`,
		`{apiVersion: fleet.masthead.dev/v1alpha1, kind: EnrollmentClass, metadata: {name: NS, annotations: {note.test.dev/password: hunter2}},
 spec: {allowedNamespaces: {list: [NS]}, agent: {defaultTargetNamespace: NS}}}`,
		`{apiVersion: events.k8s.io/v1, kind: Event, metadata: {name: e, namespace: NS}, eventTime: "2026-11-23T12:00:00.000000Z", reportingController: masthead, reportingInstance: m,
 action: Connect, reason: DialError, type: Warning, regarding: {apiVersion: v1, kind: Secret, namespace: NS, name: w2}, note: 'refused "Authorization: Bearer hunter2-x"'}`,
		`{apiVersion: events.k8s.io/v1, kind: Event, metadata: {name: other, namespace: NS}, eventTime: "2026-11-23T12:00:00.000000Z", reportingController: other, reportingInstance: m,
 action: Do, reason: Other, type: Normal, regarding: {apiVersion: v1, kind: Secret, namespace: NS, name: w2}, note: hunter2}`,
	}
}

// unpacked are the files of an archive by their names, without the folder.
func unpacked(t *testing.T, r io.Reader) map[string]string {
	t.Helper()
	compressed, err := gzip.NewReader(r)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for files := tar.NewReader(compressed); ; {
		header, err := files.Next()
		if errors.Is(err, io.EOF) {
			return out
		}
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(files)
		if err != nil {
			t.Fatal(err)
		}
		_, name, _ := strings.Cut(path.Clean(header.Name), "/")
		out[name] = string(content)
	}
}

func TestDump(t *testing.T) {
	f, ns := start(t)
	f.enroll(t, ns, "w1")
	for _, document := range planted() {
		apply(t, f.hub, strings.ReplaceAll(document, "NS", ns))
	}
	out, errOut, code := f.run(t, "debug", "dump", "--output-file", "-")
	if code != 0 {
		t.Fatal(errOut)
	}
	files := unpacked(t, bytes.NewBufferString(out))
	kubeconfig := string(f.contents["workload"])
	for name, content := range files {
		for _, secret := range []string{"hunter2", base64.StdEncoding.EncodeToString([]byte("hunter2")), "client-key-data", kubeconfig[len(kubeconfig)-80:]} {
			if strings.Contains(content, secret) {
				t.Errorf("%s has %q:\n%s", name, secret, content)
			}
		}
	}
	for name, wants := range map[string][]string{
		"README.txt": {"index.yaml"},
		"index.yaml": {"name: kubeconfig/NS/w1", "hubVersion: v1.", "what: log of NS/masthead-0 manager", "2026-11-23T12:00:00Z"},
		"objects/enrollmentclasses.fleet.masthead.dev.yaml":                     {"name: NS", "note.test.dev/password: <removed>"},
		"objects/secrets.yaml":                                                  {"name: w2", "masthead.dev/enroll: NS"},
		"objects/clusterprofiles.multicluster.x-k8s.io.yaml":                    {"name: kubeconfig-w1", "type: Connected"},
		"objects/clusters.cluster.x-k8s.io.yaml":                                {"name: w3", "version: v1.36.3"},
		"objects/compositeresourcedefinitions.apiextensions.crossplane.io.yaml": {"name: claims.NS", "password:"},
		"objects/deployments.apps.yaml":                                         {"name: PASSWORD", "- --leader-elect"},
		"objects/pods.yaml":                                                     {"- --log-level=debug", "exitCode: 1"},
		"objects/configmaps.yaml":                                               {"name: dashboards"},
		"objects/customresourcedefinitions.yaml":                                {"name: enrollmentclasses.fleet.masthead.dev", "storedVersions"},
		"claims/databases.db.test.dev.yaml":                                     {"name: sql", "agent.crossplane.io/source-uid: NS-w1", "dial https://<removed>@db"},
		"events.events.k8s.io.yaml":                                             {"reason: DialError", "Bearer <removed>"},
	} {
		for _, want := range wants {
			if want = strings.ReplaceAll(want, "NS", ns); !strings.Contains(files[name], want) {
				t.Errorf("want %q in %s, which has:\n%s", want, name, files[name])
			}
		}
	}
	if strings.Contains(files["events.events.k8s.io.yaml"], "reason: Other") {
		t.Error("the events of others are not in it")
	}
}

func TestDumpIsWrittenToTheRequestedPath(t *testing.T) {
	f, _ := start(t)
	folder := filepath.Join(t.TempDir(), "dump")
	if _, errOut, code := f.run(t, "debug", "dump", "--output-directory", folder, "--tail=0"); code != 0 || !strings.Contains(errOut, "Wrote "+folder) {
		t.Errorf("want a folder, got %d %s", code, errOut)
	}
	if _, err := os.Stat(filepath.Join(folder, "index.yaml")); err != nil {
		t.Error(err)
	}
	t.Chdir(t.TempDir())
	if _, errOut, code := f.run(t, "debug", "dump", "--tail=0"); code != 0 {
		t.Error(errOut)
	}
	info, err := os.Stat("masthead-dump-20261123-120000.tar.gz")
	if err != nil {
		t.Fatal(err)
	}
	if info.Mode().Perm() != 0o600 {
		t.Errorf("only its owner can read it, got %v", info.Mode())
	}
	for _, wrong := range [][]string{{"--output-file=a", "--output-directory=b"}, {"--tail=-1"}, {"more"}} {
		if _, errOut, code := f.run(t, append([]string{"debug", "dump"}, wrong...)...); code != exitMisused {
			t.Errorf("%v cannot be understood, got %d %s", wrong, code, errOut)
		}
	}
}
