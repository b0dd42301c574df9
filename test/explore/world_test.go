// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	mcr "sigs.k8s.io/multicluster-runtime/pkg/multicluster"
	"sigs.k8s.io/yaml"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/internal/test/controllertest"
	"github.com/masthead-dev/masthead/internal/test/testenv"
	"github.com/masthead-dev/masthead/pkg/controllers/agent"
	"github.com/masthead-dev/masthead/pkg/crossplane"
	"github.com/masthead-dev/masthead/pkg/hubidentity"
	"github.com/masthead-dev/masthead/test/explore/apiserver"
)

// The objects of every world.
const (
	className   = "class"
	targetName  = "target"
	movedName   = "other"
	claimName   = "db"
	claimGroup  = "db.acmeco.org"
	claimPlural = "mysqlinstances"
	claimKind   = "MySQLInstance"
	xrdName     = "xmysqlinstances." + claimGroup
)

var (
	scheme = controllertest.Scheme()

	claims     = schema.GroupResource{Group: claimGroup, Resource: claimPlural}
	secrets    = schema.GroupResource{Resource: "secrets"}
	namespaces = schema.GroupResource{Resource: "namespaces"}
	classes    = schema.GroupResource{Group: "fleet.masthead.dev", Resource: "enrollmentclasses"}
	crds       = schema.GroupResource{Group: apiextensionsv1.GroupName, Resource: "customresourcedefinitions"}
	xrds       = crossplane.XRDKind.GroupResource()
)

// world is a hub, its workload clusters and the processes that connect them. The other hub enrols the same clusters
// later, by mistake.
type world struct {
	hub, other *hub
	clusters   []*workload
	processes  []*process
	started    int
	// runs are the controllers of each process, and hubs the hub of each process so far, by its name.
	runs controllers
	hubs map[string]*hub

	mu   sync.Mutex
	late []*call

	checker *checker
	trace   []string
	clocks  clocks
	// quiet is for how long nothing was written, since all faults have stopped.
	quiet time.Duration
}

// clocks are the times that properties depend on. They are moved against each other, within what each property needs.
type clocks struct {
	// inFlight is how long a request without a sender may still be executed, and grace how long a manager waits for that.
	inFlight, grace time.Duration
	// lease is the duration of a lease.
	lease time.Duration
	// skew is how much the hub's clock is ahead of the managers'.
	skew time.Duration
}

// hub is a management cluster.
type hub struct {
	*apiserver.Server
	id hubidentity.Identity
	// holder is the process that holds the lease, or held it last.
	holder *process
}

// workload is a workload cluster.
type workload struct {
	server     *apiserver.Server
	name       mcr.ClusterName
	identifier string
	uid        string
	teams      []string
	// lost are the claims that a backup did not have.
	lost []*unstructured.Unstructured
}

// newWorld makes the servers and what an administrator has prepared in them. Nothing runs yet.
func newWorld() *world {
	w := &world{
		runs: controllers{agent: true}, hubs: map[string]*hub{},
		clocks: clocks{inFlight: agent.DefaultInFlightGrace, grace: agent.DefaultInFlightGrace, lease: 15 * time.Second},
	}
	w.hub, w.other = w.newHub("hub", "hub-a"), w.newHub("other", "hub-b")
	for identifier, teams := range map[string][]string{"a": {"team-1", "team-2"}, "b": {"team-1"}} {
		c := &workload{
			server: apiserver.New(identifier, time.Now), name: clusterName(identifier), identifier: identifier,
			uid: "kube-system of " + identifier, teams: teams,
		}
		w.clusters = append(w.clusters, c)
	}
	if w.clusters[0].identifier != "a" {
		w.clusters[0], w.clusters[1] = w.clusters[1], w.clusters[0]
	}
	w.checker = newChecker(w)

	for _, c := range w.clusters {
		for _, name := range append([]string{"kube-system"}, c.teams...) {
			w.create(c.server, namespaces, namespace(name), nil)
		}
	}
	w.hub.Observe = w.checker.hubChanged
	w.other.Observe = w.checker.otherHubChanged
	for _, c := range w.clusters {
		for _, ns := range c.server.List(namespaces) {
			w.checker.namespaceChanged(c, apiserver.Change{Key: key(namespaces, "", ns.GetName()), New: ns})
		}
		c.server.Observe = func(change apiserver.Change) { w.checker.clusterChanged(c, change) }
	}
	return w
}

func (w *world) newHub(name string, id hubidentity.Identity) *hub {
	return &hub{Server: apiserver.New(name, func() time.Time { return time.Now().Add(w.clocks.skew) }), id: id}
}

// fill makes what an administrator has prepared in a hub.
func (w *world) fill(s *apiserver.Server) {
	w.create(s, crds, classCRD(), nil)
	w.create(s, crds, xrdCRD(), nil)
	w.create(s, crds, claimCRD(), nil)
	w.settleServer(s)
	for _, name := range []string{targetName, movedName} {
		w.create(s, namespaces, namespace(name), nil)
	}
	c := class()
	if w.runs.references {
		_ = unstructured.SetNestedField(c.Object, string(fleetv1alpha1.ReferencesModeEnabled), "spec", "references", "mode")
	}
	w.create(s, classes, c, nil)
	w.create(s, xrds, xrd(), map[string]any{"conditions": []any{
		map[string]any{"type": "Established", "status": "True"}, map[string]any{"type": "Offered", "status": "True"},
	}})
	if w.runs.discovery {
		w.fillOffer(s)
	}
}

func (w *world) serverName(s *apiserver.Server) string {
	switch s {
	case w.hub.Server:
		return "hub"
	case w.other.Server:
		return "other hub"
	}
	for _, c := range w.clusters {
		if s == c.server {
			return c.identifier
		}
	}
	return "?"
}

// settleServer lets a server's own controllers finish.
func (w *world) settleServer(s *apiserver.Server) {
	for steps := s.Pending(); len(steps) > 0; steps = s.Pending() {
		s.Run(steps[0])
	}
}

// request sends a request that is answered at once, as those of everyone but the agent.
func (w *world) request(s *apiserver.Server, as, method, path, contentType string, body any) (map[string]any, int) {
	encoded, err := json.Marshal(body)
	if err != nil {
		panic(err)
	}
	req, err := http.NewRequest(method, "http://server.invalid"+path, bytes.NewReader(encoded))
	if err != nil {
		panic(err)
	}
	req.Header.Set("User-Agent", as)
	req.Header.Set("Content-Type", contentType)
	resp, err := s.RoundTrip(req) //nolint:bodyclose // It is in memory.
	if err != nil {
		panic(err)
	}
	out := map[string]any{}
	answer, _ := io.ReadAll(resp.Body)
	if err := json.Unmarshal(answer, &out); err != nil {
		panic(err)
	}
	return out, resp.StatusCode
}

func path(resource schema.GroupResource, version, namespace, name string) string {
	p := "/api/" + version
	if resource.Group != "" {
		p = "/apis/" + resource.Group + "/" + version
	}
	if namespace != "" {
		p += "/namespaces/" + namespace
	}
	return strings.TrimSuffix(p+"/"+resource.Resource+"/"+name, "/")
}

// create creates an object, and sets its status if that is not nil.
func (w *world) create(s *apiserver.Server, resource schema.GroupResource, obj *unstructured.Unstructured, status map[string]any) {
	p := path(resource, obj.GroupVersionKind().Version, obj.GetNamespace(), "")
	if out, code := w.request(s, "setup", http.MethodPost, p, "application/json", obj.Object); code != http.StatusCreated {
		panic(fmt.Sprintf("cannot create %s: %v", obj.GetName(), out))
	}
	if status != nil {
		w.patch(s, "setup", p+"/"+obj.GetName()+"/status", map[string]any{"status": status})
	}
}

// patch merges into an object, and returns whether that was accepted.
func (w *world) patch(s *apiserver.Server, as, path string, patch map[string]any) bool {
	_, code := w.request(s, as, http.MethodPatch, path, string(types.MergePatchType), patch)
	return code == http.StatusOK
}

func key(resource schema.GroupResource, namespace, name string) apiserver.Key {
	return apiserver.Key{GroupResource: resource, NamespacedName: types.NamespacedName{Namespace: namespace, Name: name}}
}

func object(apiVersion, kind, namespace, name string, spec map[string]any) *unstructured.Unstructured {
	obj := &unstructured.Unstructured{Object: map[string]any{"apiVersion": apiVersion, "kind": kind}}
	obj.SetNamespace(namespace)
	obj.SetName(name)
	if spec != nil {
		obj.Object["spec"] = spec
	}
	return obj
}

func namespace(name string) *unstructured.Unstructured {
	return object("v1", "Namespace", "", name, nil)
}

func class() *unstructured.Unstructured {
	return object("fleet.masthead.dev/v1alpha1", "EnrollmentClass", "", className, map[string]any{"agent": map[string]any{
		"mode": "ReadWrite", "apiGroups": []any{claimGroup}, "defaultTargetNamespace": targetName,
		"allowedTargetNamespaces": map[string]any{"list": []any{targetName, movedName}},
	}})
}

func xrd() *unstructured.Unstructured {
	return object(crossplane.XRDKind.GroupVersion().String(), crossplane.XRDKind.Kind, "", xrdName, map[string]any{
		"group": claimGroup, "names": map[string]any{"kind": "X" + claimKind, "plural": "x" + claimPlural}, "claimNames": map[string]any{"kind": claimKind, "plural": claimPlural},
		"versions": []any{map[string]any{"name": "v1alpha1", "served": true, "referenceable": true}},
	})
}

// The definitions that are read from files.
var (
	classCRD  = crdIn(testenv.CRDs(), "fleet.masthead.dev_enrollmentclasses.yaml")
	subnetCRD = crdIn(testenv.Root(), "pkg", "references", "testdata", "managedexample", "network.example.org_subnets.yaml")
	grantCRD  = crdIn(testenv.Root(), "pkg", "controllers", "references", "testdata", "referencegrants.yaml")
)

func crdIn(path ...string) func() *unstructured.Unstructured {
	return sync.OnceValue(func() *unstructured.Unstructured {
		raw, err := os.ReadFile(filepath.Join(path...))
		if err != nil {
			panic(err)
		}
		obj := &unstructured.Unstructured{}
		if err := yaml.Unmarshal(raw, &obj.Object); err != nil {
			panic(err)
		}
		return obj
	})
}

func crd(resource schema.GroupResource, version, kind, scope string, properties map[string]any) *unstructured.Unstructured {
	schema := map[string]any{"type": "object", "properties": properties}
	if properties == nil {
		schema = map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true}
	}
	singular := strings.ToLower(kind)
	return object("apiextensions.k8s.io/v1", "CustomResourceDefinition", "", resource.String(), map[string]any{
		"group": resource.Group, "scope": scope,
		"names": map[string]any{"plural": resource.Resource, "kind": kind, "singular": singular, "listKind": kind + "List"},
		"versions": []any{map[string]any{
			"name": version, "served": true, "storage": true, "subresources": map[string]any{"status": map[string]any{}},
			"schema": map[string]any{"openAPIV3Schema": schema},
		}},
	})
}

func xrdCRD() *unstructured.Unstructured {
	return crd(xrds, crossplane.XRDKind.Version, crossplane.XRDKind.Kind, "Cluster", nil)
}

// claimCRD is the definition of the claim kind as Crossplane makes it.
func claimCRD() *unstructured.Unstructured {
	str := map[string]any{"type": "string"}
	fields := func(names ...string) map[string]any {
		properties := map[string]any{}
		for _, name := range names {
			properties[name] = str
		}
		return map[string]any{"type": "object", "properties": properties}
	}
	condition := fields("type", "status", "reason", "message", "lastTransitionTime")
	condition["properties"].(map[string]any)["observedGeneration"] = map[string]any{"type": "integer", "format": "int64"} //nolint:forcetypeassert // Made above.
	condition["required"] = []any{"type", "status", "reason", "lastTransitionTime"}
	spec := fields("version", "size")
	properties := spec["properties"].(map[string]any) //nolint:forcetypeassert // Made above.
	properties["compositeDeletePolicy"] = map[string]any{"type": "string", "default": "Background"}
	properties["resourceRef"] = fields("apiVersion", "kind", "name")
	properties["writeConnectionSecretToRef"] = fields("name")
	return crd(claims, "v1alpha1", claimKind, "Namespaced", map[string]any{
		"spec": spec,
		"status": map[string]any{"type": "object", "properties": map[string]any{
			"address": str,
			"conditions": map[string]any{
				"type": "array", "items": condition, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": []any{"type"},
			},
		}},
	})
}
