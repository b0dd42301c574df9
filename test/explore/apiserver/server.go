// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// Server is an API server. Its methods may be called concurrently.
type Server struct {
	// Admit is called with each write that is otherwise accepted, before it is stored; an error is the answer.
	Admit func(Change) error

	// Observe is called with each change, in order, while the server is locked.
	Observe func(Change)

	name string
	now  func() time.Time

	mu        sync.Mutex
	version   int64
	created   int64
	compacted int64
	kinds     map[schema.GroupResource]*kind
	objects   map[Key]*unstructured.Unstructured
	log       []Change
	watches   []*Watch
}

// Key identifies an object.
type Key struct {
	schema.GroupResource
	types.NamespacedName
}

func (k Key) String() string { return k.Resource + " " + k.NamespacedName.String() }

// Change is a write of an object. Old is nil for a new object, and New is nil for one that is removed. Neither is
// modified later, nor may a receiver modify them.
type Change struct {
	Key      Key
	Old, New *unstructured.Unstructured

	// Manager is the field manager of the request, by default the program of its User-Agent. It is empty for the server's
	// own controllers.
	Manager string

	// DryRun is true for a write that is not stored, Removed for what Remove does.
	DryRun, Removed bool

	version int64
}

// New returns a server of the built-in kinds that Masthead uses: namespaces, Secrets, ConfigMaps, Events, Leases and
// definitions. The name is part of the UIDs.
func New(name string, now func() time.Time) *Server {
	s := &Server{
		name: name, now: now, version: 1,
		kinds:   map[schema.GroupResource]*kind{},
		objects: map[Key]*unstructured.Unstructured{},
	}
	for _, k := range builtin() {
		s.kinds[k.groupResource()] = k
	}
	return s
}

// Get returns an object, or nil. It must not be modified.
func (s *Server) Get(key Key) *unstructured.Unstructured {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.objects[key]
}

// Remove removes an object in spite of its finalizers. A real server does so with an object that has got its first one
// while a deletion is executed.
func (s *Server) Remove(key Key) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.store(Change{Key: key, Old: s.objects[key], Removed: true})
}

// Locked is Get for an observer.
func (s *Server) Locked(key Key) *unstructured.Unstructured { return s.objects[key] }

// List returns the objects of a resource by namespace and name. They must not be modified.
func (s *Server) List(resource schema.GroupResource) []*unstructured.Unstructured {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.list(resource)
}

func (s *Server) list(resource schema.GroupResource) []*unstructured.Unstructured {
	var out []*unstructured.Unstructured
	for key, obj := range s.objects {
		if key.GroupResource == resource {
			out = append(out, obj)
		}
	}
	slices.SortFunc(out, func(a, b *unstructured.Unstructured) int {
		return strings.Compare(a.GetNamespace()+"/"+a.GetName(), b.GetNamespace()+"/"+b.GetName())
	})
	return out
}

// Version is the resource version of the last change.
func (s *Server) Version() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.version
}

// Resources returns the resources that are served.
func (s *Server) Resources() []schema.GroupResource {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []schema.GroupResource
	for gr := range s.kinds {
		out = append(out, gr)
	}
	slices.SortFunc(out, func(a, b schema.GroupResource) int { return strings.Compare(a.String(), b.String()) })
	return out
}

// call is a request for a resource.
type call struct {
	*http.Request

	kind        *kind
	namespace   string
	name        string
	subresource string
	metadata    bool
}

func (c *call) key() Key {
	return Key{c.kind.groupResource(), types.NamespacedName{Namespace: c.namespace, Name: c.name}}
}

func (c *call) dryRun() bool { return c.URL.Query().Get("dryRun") == metav1.DryRunAll }

func (c *call) manager() string {
	if m := c.URL.Query().Get("fieldManager"); m != "" {
		return m
	}
	agent, _, _ := strings.Cut(c.UserAgent(), "/")
	return agent
}

// RoundTrip executes a request. It does not wait.
func (s *Server) RoundTrip(req *http.Request) (*http.Response, error) {
	if err := req.Context().Err(); err != nil {
		return nil, err
	}
	var body []byte
	if req.Body != nil {
		var err error
		if body, err = io.ReadAll(req.Body); err != nil {
			return nil, err
		}
		_ = req.Body.Close()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if out, ok := s.discover(req.URL.Path); ok {
		return respond(req, http.StatusOK, out), nil
	}
	c, err := s.parse(req)
	if err != nil {
		return Refuse(req, err), nil
	}
	if req.Method == http.MethodGet && c.name == "" && req.URL.Query().Get("watch") != "" {
		return s.watch(c), nil
	}
	code, out, err := s.execute(c, body)
	if err != nil {
		return Refuse(req, err), nil
	}
	return respond(req, code, out), nil
}

// parse finds the resource of a request.
func (s *Server) parse(req *http.Request) (*call, error) {
	c := &call{Request: req, metadata: strings.Contains(req.Header.Get("Accept"), "as=PartialObjectMetadata")}
	parts := strings.Split(strings.Trim(req.URL.Path, "/"), "/")
	var group string
	var rest []string
	switch {
	case len(parts) >= 3 && parts[0] == "api":
		rest = parts[1:]
	case len(parts) >= 4 && parts[0] == "apis":
		group, rest = parts[1], parts[2:]
	default:
		return nil, noSuchPath()
	}
	version, rest := rest[0], rest[1:]
	if rest[0] == "namespaces" && len(rest) > 2 && (group != "" || rest[2] != "status") {
		c.namespace, rest = rest[1], rest[2:]
	}
	c.kind = s.kinds[schema.GroupResource{Group: group, Resource: rest[0]}]
	if c.kind == nil || c.kind.gvk.Version != version || c.namespace != "" && !c.kind.namespaced {
		return nil, noSuchPath()
	}
	if len(rest) > 1 {
		c.name = rest[1]
	}
	if len(rest) > 2 {
		c.subresource = rest[2]
	}
	if c.subresource != "" && (c.subresource != "status" || !c.kind.status) || c.name != "" && c.kind.namespaced && c.namespace == "" {
		return nil, noSuchPath()
	}
	return c, nil
}

func (s *Server) execute(c *call, body []byte) (int, any, error) {
	switch {
	case c.Method == http.MethodGet && c.name == "":
		out, err := s.listed(c)
		return http.StatusOK, out, err
	case c.Method == http.MethodGet:
		obj := s.objects[c.key()]
		if obj == nil {
			return 0, nil, apierrors.NewNotFound(c.kind.groupResource(), c.name)
		}
		return http.StatusOK, c.shown(obj), nil
	}
	var obj *unstructured.Unstructured
	var err error
	code := http.StatusOK
	switch c.Method {
	case http.MethodPost:
		code = http.StatusCreated
		obj, err = s.create(c, body)
	case http.MethodPut:
		obj, err = s.replace(c, body)
	case http.MethodPatch:
		var created bool
		if obj, created, err = s.patch(c, body); created {
			code = http.StatusCreated
		}
	case http.MethodDelete:
		return s.delete(c, body)
	default:
		err = apierrors.NewMethodNotSupported(c.kind.groupResource(), c.Method)
	}
	if err != nil {
		return 0, nil, err
	}
	return code, c.shown(obj), nil
}

// selects returns which objects a list or watch is about.
func (c *call) selects() (func(*unstructured.Unstructured) bool, error) {
	q := c.URL.Query()
	byLabel, err := labels.Parse(q.Get("labelSelector"))
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	byField, err := fields.ParseSelector(q.Get("fieldSelector"))
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	for _, r := range byField.Requirements() {
		if r.Field != "metadata.name" && r.Field != "metadata.namespace" && (r.Field != "type" || c.kind.gvk.Kind != "Secret") {
			return nil, apierrors.NewBadRequest(fmt.Sprintf("field label not supported: %s", r.Field))
		}
	}
	return func(obj *unstructured.Unstructured) bool {
		if c.namespace != "" && obj.GetNamespace() != c.namespace {
			return false
		}
		kind, _, _ := unstructured.NestedString(obj.Object, "type")
		set := fields.Set{"metadata.name": obj.GetName(), "metadata.namespace": obj.GetNamespace(), "type": kind}
		return byLabel.Matches(labels.Set(obj.GetLabels())) && byField.Matches(set)
	}, nil
}

func (s *Server) listed(c *call) (any, error) {
	selected, err := c.selects()
	if err != nil {
		return nil, err
	}
	items := []any{}
	for _, obj := range s.list(c.kind.groupResource()) {
		if selected(obj) {
			items = append(items, c.item(obj))
		}
	}
	meta := map[string]any{"resourceVersion": strconv.FormatInt(s.version, 10)}
	out := map[string]any{
		"kind": c.kind.gvk.Kind + "List", "apiVersion": c.kind.gvk.GroupVersion().String(), "items": items, "metadata": meta,
	}
	switch {
	case c.metadata:
		out["kind"], out["apiVersion"] = "PartialObjectMetadataList", "meta.k8s.io/v1"
		if len(items) == 0 {
			out["items"] = nil
		}
	case c.kind.definition != "":
		meta["continue"] = ""
	}
	return out, nil
}

// item returns an object as lists have it: those of built-in kinds do not repeat the kind.
func (c *call) item(obj *unstructured.Unstructured) map[string]any {
	out := c.shown(obj)
	if !c.metadata && c.kind.definition == "" {
		out = maps.Clone(out)
		delete(out, "kind")
		delete(out, "apiVersion")
	}
	return out
}

// shown returns an object in the form that a request accepts.
func (c *call) shown(obj *unstructured.Unstructured) map[string]any {
	if !c.metadata {
		return obj.Object
	}
	return map[string]any{"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": obj.Object["metadata"]}
}

func respond(req *http.Request, code int, out any) *http.Response {
	encoded, err := json.Marshal(out)
	if err != nil {
		panic(err)
	}
	return &http.Response{
		StatusCode: code, Status: strconv.Itoa(code) + " " + http.StatusText(code), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{"Content-Type": {"application/json"}}, Request: req,
		Body: io.NopCloser(bytes.NewReader(encoded)), ContentLength: int64(len(encoded)),
	}
}

// Refuse answers with an error, as its Status.
func Refuse(req *http.Request, err error) *http.Response {
	status := newStatus(err)
	return respond(req, int(status.Code), status)
}

func newStatus(err error) metav1.Status {
	status := metav1.Status{Status: metav1.StatusFailure, Code: http.StatusInternalServerError, Message: err.Error()}
	if known := apierrors.APIStatus(nil); errors.As(err, &known) {
		status = known.Status()
	}
	status.Kind, status.APIVersion = "Status", "v1"
	return status
}

// noSuchPath is the answer to a request for a kind that is not served.
func noSuchPath() error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusNotFound, Reason: metav1.StatusReasonNotFound,
		Message: "the server could not find the requested resource", Details: &metav1.StatusDetails{},
	}}
}
