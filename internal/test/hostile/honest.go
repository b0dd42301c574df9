// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package hostile

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/uuid"
)

// Honest is a small API server that is not malicious. It keeps what is written to it in memory, serves discovery, lists
// in pages and as streams, and watches. It checks neither rights nor schemas, and knows only the latest resource
// versions. It is for tests that need very many clusters, or very large ones, at low cost; tests that depend on the
// behaviour of Kubernetes need the real API server.
type Honest struct {
	uid string

	mu      sync.Mutex
	version int64
	// resources are the resources that are served, in the order in which they were added.
	resources []resource
	// objects are by group and resource, then by namespace and name.
	objects     map[string]map[string]map[string]any
	collections map[string]Collection
	changes     []change
	// changed is closed when something has changed.
	changed chan struct{}
}

// A Collection is very many or very large objects of a resource that exist without having been written: they are
// created while they are sent, and never change. Objects that are written come after them.
type Collection struct {
	Group, Resource string
	// Count is the number of objects, and Object creates one of them, from 0. Names must differ. An object without a UID
	// or a resource version is given one.
	Count  int
	Object func(i int) map[string]any
}

// resource is a resource that is served.
type resource struct {
	group, version, name, kind string
	namespaced                 bool
}

func (r resource) key() string { return r.group + "/" + r.name }

func (r resource) groupVersion() string {
	if r.group == "" {
		return r.version
	}
	return r.group + "/" + r.version
}

// change is a change that watches report.
type change struct {
	version   int64
	eventType string
	resource  string
	object    map[string]any
}

// maxChanges is how many changes are kept. A watch that is further behind gets an error, so that its client lists
// again.
const maxChanges = 10_000

// username is the user name that the API server returns for every client.
const username = "system:serviceaccount:masthead-system:masthead"

// NewHonest returns an API server with the kinds that Masthead requests, the namespaces default and kube-system, and
// collections.
func NewHonest(collections ...Collection) *Honest {
	h := &Honest{
		uid: string(uuid.NewUUID()), version: 1, changed: make(chan struct{}),
		objects: map[string]map[string]map[string]any{}, collections: map[string]Collection{},
		resources: []resource{
			{"", "v1", "namespaces", "Namespace", false},
			{"", "v1", "configmaps", "ConfigMap", true},
			{"", "v1", "events", "Event", true},
			{"", "v1", "pods", "Pod", true},
			{"", "v1", "secrets", "Secret", true},
			{"", "v1", "serviceaccounts", "ServiceAccount", true},
			{"", "v1", "services", "Service", true},
			{"admissionregistration.k8s.io", "v1", "validatingadmissionpolicies", "ValidatingAdmissionPolicy", false},
			{"admissionregistration.k8s.io", "v1", "validatingadmissionpolicybindings", "ValidatingAdmissionPolicyBinding", false},
			{"apiextensions.k8s.io", "v1", "customresourcedefinitions", "CustomResourceDefinition", false},
			{"apiregistration.k8s.io", "v1", "apiservices", "APIService", false},
			{"apps", "v1", "deployments", "Deployment", true},
			{"events.k8s.io", "v1", "events", "Event", true},
		},
	}
	for _, c := range collections {
		h.collections[c.Group+"/"+c.Resource] = c
		for i := range c.Count {
			if c.Group+"/"+c.Resource != "apiextensions.k8s.io/customresourcedefinitions" {
				break
			}
			h.serveDefinition(c.Object(i))
		}
	}
	for _, name := range []string{"default", "kube-system"} {
		ns := map[string]any{"metadata": map[string]any{"name": name}, "status": map[string]any{"phase": "Active"}}
		if name == "kube-system" {
			ns["metadata"].(map[string]any)["uid"] = h.uid
		}
		h.put(h.resources[0], ns)
	}
	return h
}

// UID is the UID of the namespace kube-system, which identifies a cluster.
func (h *Honest) UID() string { return h.uid }

// Put writes an object, as its owner would. Its kind must be served.
func (h *Honest) Put(group, resource string, object map[string]any) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, r := range h.resources {
		if r.group == group && r.name == resource {
			h.put(r, object)
			return nil
		}
	}
	return fmt.Errorf("%s.%s is not served", resource, group)
}

// Objects returns how many objects of a resource have been written and still exist.
func (h *Honest) Objects(group, resource string) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.objects[group+"/"+resource])
}

func getMetadata(object map[string]any) map[string]any {
	m, _ := object["metadata"].(map[string]any)
	if m == nil {
		m = map[string]any{}
		object["metadata"] = m
	}
	return m
}

func getString(m map[string]any, key string) string {
	s, _ := m[key].(string)
	return s
}

func objectKey(object map[string]any) string {
	m := getMetadata(object)
	return getString(m, "namespace") + "/" + getString(m, "name")
}

// put writes an object. Objects that have been returned are never changed.
func (h *Honest) put(r resource, object map[string]any) map[string]any {
	key := objectKey(object)
	have := h.objects[r.key()][key]
	object = clone(object)
	object["apiVersion"], object["kind"] = r.groupVersion(), r.kind
	m := getMetadata(object)
	eventType := "ADDED"
	if have == nil {
		if getString(m, "uid") == "" {
			m["uid"] = string(uuid.NewUUID())
		}
		m["creationTimestamp"], m["generation"] = time.Now().UTC().Format(time.RFC3339), 1
	} else {
		eventType = "MODIFIED"
		old := getMetadata(have)
		m["uid"], m["creationTimestamp"], m["generation"] = old["uid"], old["creationTimestamp"], old["generation"]
		if at, ok := old["deletionTimestamp"]; ok {
			m["deletionTimestamp"] = at
		}
		if sameContent(have, object) {
			return have
		}
		if !same(have["spec"], object["spec"]) {
			m["generation"] = asInt(old["generation"]) + 1
		}
	}
	if r.key() == "apiextensions.k8s.io/customresourcedefinitions" {
		h.serveDefinition(object)
	}
	if _, leaving := m["deletionTimestamp"]; leaving && !hasFinalizers(object) {
		return h.remove(r, key)
	}
	h.tell(eventType, r, object)
	if h.objects[r.key()] == nil {
		h.objects[r.key()] = map[string]map[string]any{}
	}
	h.objects[r.key()][key] = object
	return object
}

func (h *Honest) remove(r resource, key string) map[string]any {
	object := clone(h.objects[r.key()][key])
	delete(h.objects[r.key()], key)
	if r.key() == "apiextensions.k8s.io/customresourcedefinitions" {
		group, names, _ := parseDefinition(object)
		h.resources = slices.DeleteFunc(h.resources, func(r resource) bool { return r.group == group && r.name == getString(names, "plural") })
	}
	h.tell("DELETED", r, object)
	return object
}

// tell makes watches report a change, and gives the object its resource version.
func (h *Honest) tell(eventType string, r resource, object map[string]any) {
	h.version++
	getMetadata(object)["resourceVersion"] = strconv.FormatInt(h.version, 10)
	h.changes = append(h.changes, change{h.version, eventType, r.key(), object})
	if len(h.changes) > maxChanges {
		h.changes = slices.Clone(h.changes[len(h.changes)-maxChanges/2:])
	}
	close(h.changed)
	h.changed = make(chan struct{})
}

// serveDefinition serves the kind that a CustomResourceDefinition defines, and reports that in its status.
func (h *Honest) serveDefinition(crd map[string]any) {
	group, names, versions := parseDefinition(crd)
	spec, _ := crd["spec"].(map[string]any)
	for _, v := range versions {
		v, _ := v.(map[string]any)
		r := resource{group, getString(v, "name"), getString(names, "plural"), getString(names, "kind"), getString(spec, "scope") != "Cluster"}
		if served, _ := v["served"].(bool); served && !slices.Contains(h.resources, r) {
			h.resources = append(h.resources, r)
		}
	}
	crd["status"] = map[string]any{"acceptedNames": names, "conditions": []any{
		map[string]any{"type": "NamesAccepted", "status": "True", "reason": "NoConflicts"},
		map[string]any{"type": "Established", "status": "True", "reason": "InitialNamesAccepted"},
	}}
}

func parseDefinition(crd map[string]any) (group string, names map[string]any, versions []any) {
	spec, _ := crd["spec"].(map[string]any)
	names, _ = spec["names"].(map[string]any)
	versions, _ = spec["versions"].([]any)
	return getString(spec, "group"), names, versions
}

func hasFinalizers(object map[string]any) bool {
	f, _ := getMetadata(object)["finalizers"].([]any)
	return len(f) > 0
}

func asInt(v any) int64 {
	switch v := v.(type) {
	case int:
		return int64(v)
	case int64:
		return v
	case float64:
		return int64(v)
	}
	return 0
}

func clone(object map[string]any) map[string]any {
	out := maps.Clone(object)
	if m, ok := object["metadata"].(map[string]any); ok {
		out["metadata"] = maps.Clone(m)
	}
	return out
}

func same(a, b any) bool {
	x, errX := json.Marshal(a)
	y, errY := json.Marshal(b)
	return errX == nil && errY == nil && string(x) == string(y)
}

// sameContent is whether a write of an object changes nothing.
func sameContent(have, want map[string]any) bool {
	want = clone(want)
	getMetadata(want)["resourceVersion"] = getMetadata(have)["resourceVersion"]
	if status, ok := have["status"]; ok && want["status"] == nil {
		want["status"] = status
	}
	return same(have, want)
}

// serve answers a request.
func (h *Honest) serve(w http.ResponseWriter, r *request) {
	switch {
	case r.URL.Path == "/readyz", r.URL.Path == "/livez", r.URL.Path == "/healthz":
		_, _ = w.Write([]byte("ok"))
	case r.URL.Path == "/version":
		answerJSON(w, http.StatusOK, map[string]any{"major": "1", "minor": "36", "gitVersion": "v1.36.3"})
	case r.isDiscovery():
		h.discover(w, r)
	case strings.HasPrefix(r.URL.Path, "/openapi"):
		answerJSON(w, http.StatusOK, map[string]any{"paths": map[string]any{}})
	case r.resource == "":
		answerStatus(w, http.StatusNotFound, "NotFound", "there is nothing at this path")
	case r.verb == verbCreate && (r.group == "authorization.k8s.io" || r.group == "authentication.k8s.io"):
		review(w, r)
	default:
		h.serveResource(w, r)
	}
}

func (h *Honest) serveResource(w http.ResponseWriter, r *request) {
	h.mu.Lock()
	i := slices.IndexFunc(h.resources, func(s resource) bool {
		return s.group == r.group && s.version == r.version && s.name == r.resource
	})
	if i < 0 {
		h.mu.Unlock()
		answerStatus(w, http.StatusNotFound, "NotFound", "the server could not find the requested resource")
		return
	}
	served := h.resources[i]
	h.mu.Unlock()
	switch r.verb {
	case verbList:
		h.list(w, r, served)
	case verbWatch:
		h.watch(w, r, served)
	case verbGet:
		h.get(w, r, served)
	default:
		h.write(w, r, served)
	}
}

// review answers access reviews and reviews of the user itself: every user may do everything, and has the same name.
func review(w http.ResponseWriter, r *request) {
	var body map[string]any
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxBody)).Decode(&body); err != nil {
		answerStatus(w, http.StatusBadRequest, "BadRequest", "the body is no review")
		return
	}
	everything := []any{"*"}
	switch r.resource {
	case "selfsubjectreviews":
		body["status"] = map[string]any{"userInfo": map[string]any{"username": username}}
	case "selfsubjectrulesreviews":
		body["status"] = map[string]any{"incomplete": false, "nonResourceRules": []any{}, "resourceRules": []any{
			map[string]any{"verbs": everything, "apiGroups": everything, "resources": everything},
		}}
	default:
		body["status"] = map[string]any{"allowed": true}
	}
	answerJSON(w, http.StatusCreated, body)
}

func answerJSON(w http.ResponseWriter, code int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(body)
}

func answerStatus(w http.ResponseWriter, code int, reason, message string) {
	answerJSON(w, code, map[string]any{
		"kind": "Status", "apiVersion": "v1", "metadata": map[string]any{}, "status": "Failure", "reason": reason, "message": message, "code": code,
	})
}
