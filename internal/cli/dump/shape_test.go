// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package dump

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestShapes(t *testing.T) {
	for name, tc := range map[string]struct {
		reason, object string
		keep           shape
		stays          []string
	}{
		"Pod": {
			reason: "The dump shows how a Pod is started, without the values that users set.", keep: pod,
			object: `{kind: Pod, metadata: {name: p, managedFields: [{manager: hunter2}], annotations: {
  kubectl.kubernetes.io/last-applied-configuration: hunter2, vault.test.dev/key: hunter2, fleet.masthead.dev/cluster: capi/a/b}},
 spec: {volumes: [{name: v, secret: {secretName: certs}}, {name: c, csi: {volumeAttributes: {key: hunter2}}}],
  initContainers: [{name: i, command: [sh, -c, hunter2]}],
  containers: [{name: manager, image: 'masthead:1', args: [--leader-elect, --cluster-qps=7, --token=hunter2, hunter2, --config, hunter2, '--sources=https://u:hunter2@h'],
   env: [{name: A, value: hunter2}, {name: B, valueFrom: {secretKeyRef: {name: s, key: k}}}], lifecycle: {preStop: {exec: {command: [hunter2]}}},
   livenessProbe: {httpGet: {httpHeaders: [{name: h, value: hunter2}]}}, volumeMounts: [{name: v, mountPath: /v, subPathExpr: hunter2}]}]},
 status: {containerStatuses: [{name: manager, state: {waiting: {message: 'token=hunter2'}}}]}}`,
			stays: []string{"--leader-elect", "--cluster-qps=7", "--config", "secretKeyRef", `"A"`, "certs", "masthead:1", "capi/a/b", "containerStatuses", "vault.test.dev/key"},
		},
		"Deployment": {
			reason: "The same for the template of a Deployment.", keep: deployment,
			object: `{kind: Deployment, metadata: {name: d}, spec: {replicas: 2, template: {metadata: {annotations: {a: hunter2}},
 spec: {containers: [{name: manager, env: [{name: A, value: hunter2}], args: [hunter2]}]}}}}`,
			stays: []string{`"replicas":2`, `"A"`},
		},
		"Definition": {
			reason: "Schemas are there, without values; a property that is called default is none.", keep: definition,
			object: `{kind: CompositeResourceDefinition, metadata: {name: x}, spec: {group: g, versions: [{name: v1, schema: {openAPIV3Schema: {type: object, properties: {
 default: {type: string, default: hunter2}, list: {type: array, items: {type: string, example: hunter2, maxLength: 7}}, any: {anyOf: [{enum: [hunter2]}]}}}}}]}}`,
			stays: []string{`"default":{"type":"string"}`, `"maxLength":7`, `"any"`, `"group":"g"`},
		},
		"Claim": {
			reason: "Where a claim is, not what it asks for.", keep: claim(),
			object: `{kind: Database, metadata: {name: c, annotations: {agent.crossplane.io/source-uid: u}}, spec: {password: hunter2, resourceRef: {name: x}},
 status: {address: hunter2, conditions: [{type: Ready}]}}`,
			stays: []string{"source-uid", "resourceRef", "conditions"},
		},
		"ConfigMap": {
			reason: "The config file is the manager's, nothing else is.", keep: configMap,
			object: `{kind: ConfigMap, metadata: {name: masthead-config}, data: {manager.yaml: 'sources: [capi]', other: hunter2}}`,
			stays:  []string{"sources: [capi]", "other"},
		},
		"OtherConfigMap": {
			reason: "Another one has keys.", keep: configMap,
			object: `{kind: ConfigMap, metadata: {name: other}, data: {manager.yaml: hunter2}}`,
			stays:  []string{"manager.yaml"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			data, err := json.Marshal(finish(tc.keep(parse(t, tc.object))))
			if err != nil {
				t.Fatal(err)
			}
			if strings.Contains(string(data), "hunter2") {
				t.Errorf("%s A value is kept: %s", tc.reason, data)
			}
			for _, want := range tc.stays {
				if !strings.Contains(string(data), want) {
					t.Errorf("%s Want %s in %s", tc.reason, want, data)
				}
			}
		})
	}
}
