// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"strings"

	appsv1alpha1 "github.com/masthead-dev/masthead/apis/apps/v1alpha1"
)

// Group and version of the peer's kind of Application.
const (
	theirGroup   = "app.k8s.io"
	theirVersion = "v1beta1"
)

// perNamespace is how many Applications, and how many unrelated objects of each kind, are in a namespace.
const perNamespace = 100

// A component is one of the three objects of every Application.
type component struct {
	// suffix of its name, and path of the collection in a namespace.
	suffix, group, version, kind, plural string

	// body is all of the object but its metadata.
	body string
}

// components are the same in every Application, and the unrelated objects are like them. The Deployment and the
// ConfigMap have the size that is usual for such objects.
func components() []component {
	return []component{
		{suffix: "web", group: "apps", version: "v1", kind: "Deployment", plural: "deployments", body: `"spec":{"replicas":1,` +
			`"selector":{"matchLabels":{"app":"web"}},"template":{"metadata":{"labels":{"app":"web"}},"spec":{"containers":[{` +
			`"name":"web","image":"registry.example.org/shop/web:1.2.3","ports":[{"name":"http","containerPort":8080}],` +
			`"env":[{"name":"LOG_LEVEL","value":"info"},{"name":"DATABASE_HOST","value":"database.example.org"}],` +
			`"resources":{"requests":{"cpu":"100m","memory":"128Mi"},"limits":{"memory":"256Mi"}},` +
			`"readinessProbe":{"httpGet":{"path":"/readyz","port":"http"}},"livenessProbe":{"httpGet":{"path":"/livez","port":"http"}}}]}}}`},
		// Headless, because with an address each of the thousands of Services would need another object to be written.
		{suffix: "http", version: "v1", kind: "Service", plural: "services", body: `"spec":{"clusterIP":"None","selector":{"app":"web"},` +
			`"ports":[{"name":"http","port":80,"targetPort":"http"}]}`},
		{suffix: "settings", version: "v1", kind: "ConfigMap", plural: "configmaps", body: `"data":{"settings.yaml":"` + strings.Repeat("key: value; ", 80) + `"}`},
	}
}

// collection is the path of the objects of a kind in a namespace, or in all.
func collection(group, version, plural, namespace string) string {
	root := "/api/" + version
	if group != "" {
		root = "/apis/" + group + "/" + version
	}
	if namespace != "" {
		root += "/namespaces/" + namespace
	}
	return root + "/" + plural
}

func (c component) collection(namespace string) string {
	return collection(c.group, c.version, c.plural, namespace)
}

// object is the JSON of a component, with the labels and the annotation by which both programs recognise it.
func (c component) object(app string) []byte {
	return c.json(app+"-"+c.suffix, `"labels":{"app.kubernetes.io/name":"`+app+`","team":"a"},"annotations":{"kubernetes.io/application":"`+app+`"}`)
}

// unrelated is the JSON of an object of the same kind that is no component.
func (c component) unrelated(i int) []byte {
	return c.json(fmt.Sprintf("other-%d", i), fmt.Sprintf(`"labels":{"app.kubernetes.io/name":"other-%d","team":"b"}`, i))
}

func (c component) json(name, metadata string) []byte {
	apiVersion := c.version
	if c.group != "" {
		apiVersion = c.group + "/" + c.version
	}
	return fmt.Appendf(nil, `{"apiVersion":"%s","kind":"%s","metadata":{"name":"%s",%s},%s}`, apiVersion, c.kind, name, metadata, c.body)
}

// set names the Applications of one run. Each run has its own, in its own namespaces, so that no run finds objects that
// another left behind.
type set struct{ run, apps int }

func (s set) namespace(i int) string { return fmt.Sprintf("bench-%d-%d", s.run, i/perNamespace) }

func (s set) name(i int) string { return fmt.Sprintf("app-%d", i) }

// namespaces are all namespaces that the set needs.
func (s set) namespaces() []string {
	var out []string
	for i := 0; i < s.apps; i += perNamespace {
		out = append(out, s.namespace(i))
	}
	return out
}

// ourApplication is the JSON of an Application of apps.masthead.dev.
func ourApplication(name, selector string, parts []part) []byte {
	words := make([]string, 0, len(parts))
	for _, p := range parts {
		words = append(words, fmt.Sprintf(`"%s":{"group":"%s","version":"%s","kind":"%s"}`, p.name, p.group, p.version, p.kind))
	}
	return fmt.Appendf(nil, `{"apiVersion":"%s","kind":"Application","metadata":{"name":"%s"},"spec":{"type":"shop","version":"1.2.3",`+
		`"selector":%s,"components":{%s}}}`, appsv1alpha1.GroupVersion, name, selector, strings.Join(words, ","))
}

// theirApplication is the JSON of an Application of app.k8s.io with the same content, as far as that is possible.
// Because of addOwnerRef its components are deleted with it.
func theirApplication(name, selector string, parts []part) []byte {
	words := make([]string, 0, len(parts))
	for _, p := range parts {
		words = append(words, fmt.Sprintf(`{"group":"%s","kind":"%s"}`, p.group, p.kind))
	}
	return fmt.Appendf(nil, `{"apiVersion":"%s/%s","kind":"Application","metadata":{"name":"%s"},"spec":{"descriptor":{"type":"shop","version":"1.2.3"},`+
		`"addOwnerRef":true,"selector":%s,"componentKinds":[%s]}}`, theirGroup, theirVersion, name, selector, strings.Join(words, ","))
}

// deploymentStatus is the JSON of a patch with the status that Kubernetes' own controller would write for a Deployment
// whose Pod is ready, or is not.
func deploymentStatus(ready bool) []byte {
	if ready {
		return []byte(`{"status":{"observedGeneration":1,"replicas":1,"updatedReplicas":1,"readyReplicas":1,"availableReplicas":1,"unavailableReplicas":0,"conditions":[` +
			`{"type":"Available","status":"True","reason":"MinimumReplicasAvailable"},{"type":"Progressing","status":"True","reason":"NewReplicaSetAvailable"}]}}`)
	}
	return []byte(`{"status":{"observedGeneration":1,"replicas":1,"updatedReplicas":1,"readyReplicas":0,"availableReplicas":0,"unavailableReplicas":1,"conditions":[` +
		`{"type":"Available","status":"False","reason":"MinimumReplicasUnavailable"},{"type":"Progressing","status":"True","reason":"ReplicaSetUpdated"}]}}`)
}
