// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/masthead-dev/masthead/internal/test/controllertest"
	"github.com/masthead-dev/masthead/internal/test/testenv"
)

var servers controllertest.Servers

func TestMain(m *testing.M) { servers.Run(m) }

// side is one of two API servers that get the same requests.
type side struct {
	name string
	http http.RoundTripper
	host string
	// rename gives each test its own namespace and kind.
	rename *strings.Replacer

	// versions and uids are those of each object so far, by kind and name, oldest first.
	versions, uids map[string][]string
	watches        []*follower
}

// request is a request about objects of a kind. In its body @version, @stale, @uid and @former stand for what the
// server has given the object of a name.
type request struct {
	method, path, contentType, body string
	kind, name                      string
	// as is PartialObjectMetadata, or PartialObjectMetadataList.
	as string
}

// answer is what two servers have to agree on.
type answer struct {
	Code   int
	Reason any
	Object any
}

// items are those of a list.
func (a answer) items() []map[string]any {
	list, _ := a.Object.(map[string]any)
	items, _ := list["items"].([]any)
	var out []map[string]any
	for _, item := range items {
		out = append(out, item.(map[string]any)) //nolint:forcetypeassert // The API has no others.
	}
	return out
}

// do sends a request. The response has to be closed.
func (s *side) do(ctx context.Context, t *testing.T, r request) *http.Response {
	t.Helper()
	last := func(of map[string][]string, back int) string {
		all := of[r.kind+r.name]
		if n := len(all); n > back {
			return all[n-1-back]
		}
		return "1" // No object has this version.
	}
	body := strings.NewReplacer("@version", last(s.versions, 0), "@stale", last(s.versions, 1),
		"@uid", last(s.uids, 0), "@former", last(s.uids, 1)).Replace(s.rename.Replace(r.body))
	req, err := http.NewRequestWithContext(ctx, r.method, s.host+s.rename.Replace(r.path), strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", cmp.Or(r.contentType, "application/json"))
	req.Header.Set("User-Agent", "tester/1")
	req.Header.Set("Accept", "application/json")
	if r.as != "" {
		req.Header.Set("Accept", "application/json;g=meta.k8s.io;v=v1;as="+r.as)
	}
	resp, err := s.http.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	return resp
}

func (s *side) send(t *testing.T, r request) answer {
	t.Helper()
	resp := s.do(t.Context(), t, r)
	defer func() { _ = resp.Body.Close() }()
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]any{}
	if err := json.NewDecoder(bytes.NewReader(raw)).Decode(&out); err != nil {
		return answer{Code: resp.StatusCode} // As for a path that no handler has.
	}
	if out["kind"] == "Status" {
		return answer{Code: resp.StatusCode, Reason: out["reason"]}
	}
	meta, _ := out["metadata"].(map[string]any)
	if !strings.Contains(r.path, "dryRun") && !strings.Contains(r.body, "dryRun") {
		id := fmt.Sprint(r.kind, meta["name"])
		s.note(s.versions, id, meta["resourceVersion"])
		s.note(s.uids, id, meta["uid"])
	}
	return answer{Code: resp.StatusCode, Object: s.comparable(r.kind, out)}
}

func (s *side) note(in map[string][]string, id string, value any) {
	if text, ok := value.(string); ok && !slices.Contains(in[id], text) {
		in[id] = append(in[id], text)
	}
}

// comparable replaces what differs between any two servers by which of an object's values it is.
func (s *side) comparable(kind string, out map[string]any) map[string]any {
	items, _ := out["items"].([]any)
	for _, item := range items {
		s.comparable(kind, item.(map[string]any)) //nolint:forcetypeassert // The API has no others.
	}
	meta, _ := out["metadata"].(map[string]any)
	if uid, ok := meta["uid"].(string); ok {
		meta["uid"] = slices.Index(s.uids[fmt.Sprint(kind, meta["name"])], uid)
	}
	// Whether a patch that changes nothing makes a new version depends on the second: on the order of managed fields.
	for _, field := range []string{"creationTimestamp", "deletionTimestamp", "resourceVersion"} {
		if meta[field] != nil {
			meta[field] = "some"
		}
	}
	fields, _ := meta["managedFields"].([]any)
	for _, f := range fields {
		delete(f.(map[string]any), "time") //nolint:forcetypeassert // The API has no others.
	}
	slices.SortFunc(fields, func(a, b any) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
	return out
}

// follower is an open watch of Widgets.
type follower struct {
	side *side
	// events are closed when the server has ended the watch.
	events chan delivery
	stop   context.CancelFunc
	// last is what it has delivered of each object.
	last map[string]map[string]any
}

// delivery is an event of a watch.
type delivery struct {
	Type   string
	Object map[string]any
}

// follow opens a watch after the objects that have been listed.
func (s *side) follow(t *testing.T, r request, listed answer) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	f := &follower{side: s, events: make(chan delivery, 1000), stop: stop, last: map[string]map[string]any{}}
	for _, item := range listed.items() {
		f.last[nameOf(item)] = item
	}
	resp := s.do(ctx, t, r) //nolint:bodyclose // What reads the events closes it.
	if resp.StatusCode != http.StatusOK {
		t.Fatalf("%s: %s: %s", s.name, r.path, resp.Status)
	}
	go func() {
		defer close(f.events)
		defer func() { _ = resp.Body.Close() }()
		for d := json.NewDecoder(resp.Body); ; {
			e := delivery{}
			if d.Decode(&e) != nil {
				return
			}
			f.events <- e
		}
	}()
	s.watches = append(s.watches, f)
}

func nameOf(obj map[string]any) string {
	name, _, _ := unstructured.NestedString(obj, "metadata", "name")
	return name
}

// next returns the next event, in a comparable form; nil at the end of the watch.
func (f *follower) next(t *testing.T) *delivery {
	t.Helper()
	select {
	case e, ok := <-f.events:
		if !ok {
			return nil
		}
		e.Object = f.side.comparable("Widget", e.Object)
		return &e
	case <-time.After(time.Minute):
		t.Fatalf("%s delivers nothing", f.side.name)
		return nil
	}
}

// isNews reports whether an event changes what is known of its object, or says that the initial ones are complete. A
// server may send others.
func (f *follower) isNews(e *delivery) bool {
	name := nameOf(e.Object)
	same := e.Type == "MODIFIED" && reflect.DeepEqual(f.last[name], e.Object)
	switch e.Type {
	case "BOOKMARK":
		annotations, _, _ := unstructured.NestedMap(e.Object, "metadata", "annotations")
		return len(annotations) > 0
	case "DELETED":
		delete(f.last, name)
	default:
		f.last[name] = e.Object
	}
	return !same
}

// pair are two API servers that get the same requests.
type pair struct {
	*controllertest.Case

	kube, ours *side
	server     *Server
	client     client.Client
	// leaving means that the namespace or the kind is being deleted.
	leaving bool

	recent      []string
	differences int
}

// compare fails the test if the servers do not agree.
func (p *pair) compare(what string, want, got any) {
	p.T.Helper()
	if reflect.DeepEqual(want, got) {
		return
	}
	p.T.Errorf("%s\nafter %s\n%s", what, strings.Join(p.recent[max(0, len(p.recent)-5):], "\n      "), gocmp.Diff(want, got))
	if p.differences++; p.differences == 5 {
		p.T.FailNow()
	}
}

// send sends a request to both servers, and compares the answers and what the watches deliver.
func (p *pair) send(r request) answer {
	p.T.Helper()
	p.recent = append(p.recent, strings.Join([]string{r.method, r.path, r.as, r.contentType, r.body}, " "))
	want, got := p.kube.send(p.T, r), p.ours.send(p.T, r)
	p.compare("The answers differ", want, got)
	p.delivered(false)
	return got
}

// both sends a request that both servers accept, and answer differently.
func (p *pair) both(r request) {
	p.T.Helper()
	for _, s := range []*side{p.kube, p.ours} {
		if a := s.send(p.T, r); a.Code >= http.StatusBadRequest {
			p.T.Fatalf("%s: %s %s: %v", s.name, r.method, r.path, a)
		}
	}
	p.settle()
}

// until sends a request until each server answers it with a code.
func (p *pair) until(code int, r request) {
	p.T.Helper()
	for _, s := range []*side{p.kube, p.ours} {
		p.Within(fmt.Sprintf("%s: %s %s", s.name, r.method, r.path), func() error {
			if a := s.send(p.T, r); a.Code != code {
				return errors.Join(fmt.Errorf("%v", a), testenv.ReleaseDefinitions(p.Ctx, p.client))
			}
			return nil
		})
	}
}

// delivered compares the events of the server in memory with as many of the other. The controllers of a server delete
// in any order.
func (p *pair) delivered(anyOrder bool) {
	p.T.Helper()
	for i, w := range p.server.Watches() {
		var want, got []*delivery
		ours, kube := p.ours.watches[i], p.kube.watches[i]
		for range w.Pending() {
			w.Deliver()
			if e := ours.next(p.T); ours.isNews(e) {
				got = append(got, e)
			}
		}
		for len(want) < len(got) {
			switch e := kube.next(p.T); {
			case e == nil:
				p.T.Fatalf("The watch has ended, and should deliver %v", got)
			case kube.isNews(e):
				want = append(want, e)
			}
		}
		p.compareEvents(anyOrder, want, got)
	}
}

func (p *pair) compareEvents(anyOrder bool, want, got []*delivery) {
	p.T.Helper()
	if anyOrder {
		for _, events := range [][]*delivery{want, got} {
			slices.SortFunc(events, func(a, b *delivery) int { return strings.Compare(nameOf(a.Object), nameOf(b.Object)) })
		}
	}
	p.compare("The events differ", want, got)
}

// follow opens the watches: of all objects, as an informer does, and of the metadata of some, after a list.
func (p *pair) follow() {
	p.T.Helper()
	for _, s := range []*side{p.kube, p.ours} {
		for _, f := range s.watches {
			f.stop()
		}
		s.watches = nil
	}
	p.Within("the watches are closed", func() error {
		if n := len(p.server.Watches()); n > 0 {
			return fmt.Errorf("%d are open", n)
		}
		return nil
	})
	all := request{method: "GET", path: everyWidget + "?watch=true&allowWatchBookmarks=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan"}
	list := request{method: "GET", path: widgets + "?labelSelector=a%3D1", as: "PartialObjectMetadataList"}
	for _, s := range []*side{p.kube, p.ours} {
		s.follow(p.T, all, answer{})
		listed := s.send(p.T, request{method: "GET", path: list.path, as: list.as, kind: "Widget"})
		versions := s.versions["Widget<nil>"]
		watch := request{method: "GET", path: list.path + "&watch=true&resourceVersion=" + versions[len(versions)-1], as: "PartialObjectMetadata"}
		s.follow(p.T, watch, listed)
	}
	p.delivered(false)
}

// ended compares what the watches deliver before the servers end them.
func (p *pair) ended() {
	p.T.Helper()
	for i := range p.ours.watches {
		var events [2][]*delivery
		for j, f := range []*follower{p.kube.watches[i], p.ours.watches[i]} {
			for e := f.next(p.T); e != nil; e = f.next(p.T) {
				if f.isNews(e) {
					events[j] = append(events[j], e)
				}
			}
		}
		p.compareEvents(true, events[0], events[1])
	}
}

// settle lets the controllers of the server in memory finish, but for the garbage collector: the other has none.
func (p *pair) settle() {
	for {
		steps := slices.DeleteFunc(p.server.Pending(), func(s Step) bool {
			name, _, _ := strings.Cut(s.Name, " ")
			return name != "establish" && name != "empty" && name != "finalize"
		})
		if len(steps) == 0 {
			return
		}
		p.server.Run(steps[0])
	}
}

// emptied deletes what the objects are in, compares what that does to them, and then lets it go.
func (p *pair) emptied(rng *rand.Rand, probe, deletion request) {
	p.T.Helper()
	p.follow()
	for name, finalizer := range map[string]string{"kept": `"example.org/a"`, "collected": `"foregroundDeletion"`, "gone": ""} {
		p.send(request{method: "POST", path: widgets, body: widget(name, finalizer), kind: "Widget"})
	}
	p.both(deletion)
	p.delivered(true)
	p.until(http.StatusForbidden, probe)
	lists := []request{{method: "GET", path: widgets, kind: "Widget"}, {method: "GET", path: team + "/secrets", kind: "Secret"}}
	for _, list := range lists {
		p.Within("the same is left", func() error {
			if want, got := p.kube.send(p.T, list), p.ours.send(p.T, list); !reflect.DeepEqual(want, got) {
				return errors.New(gocmp.Diff(want, got))
			}
			return nil
		})
	}
	p.leaving = true
	p.walk(rng, 50)
	p.leaving = false
	for _, list := range lists {
		for _, item := range p.send(list).items() {
			at := list.path + "/" + nameOf(item)
			p.send(request{method: "PATCH", path: at, contentType: mergePatch, body: `{"metadata":{"finalizers":null}}`, kind: list.kind})
		}
	}
	p.settle()
}

const (
	team            = "/api/v1/namespaces/team"
	everyWidget     = "/apis/example.org/v1/widgets"
	widgets         = "/apis/example.org/v1/namespaces/team/widgets"
	kinds           = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
	mergePatch      = string(types.MergePatchType)
	namespaceObject = `{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"team"}}`
)

func widget(name, finalizers string) string {
	return fmt.Sprintf(`{"apiVersion":"example.org/v1","kind":"Widget","metadata":{"name":%q,"labels":{"a":"1"},"finalizers":[%s]}}`, name, finalizers)
}

const definition = `{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"widgets.example.org"},
"spec":{"group":"example.org","scope":"Namespaced","names":{"plural":"widgets","kind":"Widget","singular":"widget","listKind":"WidgetList"},
"versions":[{"name":"v1","served":true,"storage":true,"subresources":{"status":{}},"schema":{"openAPIV3Schema":{"type":"object","properties":{
"spec":{"type":"object","properties":{"size":{"type":"integer","minimum":1},"policy":{"type":"string","default":"Background"},
"ref":{"type":"object","properties":{"name":{"type":"string"}},"x-kubernetes-validations":[{"rule":"self == oldSelf || self.name != 'z'"}]},"free":{"type":"object","x-kubernetes-preserve-unknown-fields":true},
"tags":{"type":"array","items":{"type":"string"}}}},
"status":{"type":"object","properties":{"address":{"type":"string"},"conditions":{"type":"array","x-kubernetes-list-type":"map",
"x-kubernetes-list-map-keys":["type"],"items":{"type":"object","required":["type","status"],"properties":{"type":{"type":"string"},"status":{"type":"string"}}}}}}}}}}]}}`

// randomRequest returns a request about one of a few objects.
func randomRequest(rng *rand.Rand) (r request) {
	pick := func(options ...string) string { return options[rng.IntN(len(options))] }
	kind := pick("Widget", "Widget", "Widget", "Secret")
	path, apiVersion := "/apis/example.org/v1/namespaces/team/widgets", "example.org/v1"
	content := pick(`"spec":{"size":1}`, `"spec":{"size":2,"tags":["a"]}`, `"spec":{"size":0}`, `"spec":{"ref":{"name":"x"},"unknown":1}`,
		`"spec":{"ref":{"name":"z"}}`, `"spec":{"size":"text"}`, `"spec":{"policy":null,"free":{"a":{"b":1}}}`, `"spec":{"free":{}},"status":{"address":"y"}`, `"spec":{}`)
	if kind == "Secret" {
		path, apiVersion = "/api/v1/namespaces/team/secrets", "v1"
		content = pick(`"data":{"a":"eA=="}`, `"data":{"a":"eQ==","b":"eA=="}`, `"data":{}`, `"type":"example.org/x"`)
	}
	if rng.IntN(12) == 0 {
		path = strings.Replace(path, "/team/", "/missing/", 1)
	}
	name := pick("x", "y")
	defer func() { r.kind, r.name = kind, name }()
	meta := fmt.Sprintf(`"name":%q`, name)
	for _, field := range []string{
		`"resourceVersion":` + pick(`"@version"`, `"@version"`, `"@stale"`, `"0"`, `""`),
		`"uid":` + pick(`"@uid"`, `"@former"`),
		`"finalizers":` + pick(`["example.org/a"]`, `["example.org/a","example.org/b"]`, `[]`, `null`),
		`"labels":` + pick(`{"a":"1"}`, `{"b":"2"}`, `{"a":null}`),
		`"annotations":` + pick(`{"a":"1"}`, `{"a":"2","b":"1"}`),
	} {
		if rng.IntN(3) == 0 {
			meta += "," + field
		}
	}
	object := fmt.Sprintf(`{"apiVersion":%q,"kind":%q,"metadata":{%s},%s}`, apiVersion, kind, meta, content)
	query := pick("", "", "", "?dryRun=All")
	at := path + "/" + name
	apply := "?fieldManager=" + pick("m1", "m2") + pick("", "&force=true") + pick("", "", "&dryRun=All")
	switch rng.IntN(11) {
	case 0, 1:
		return request{method: "POST", path: path + query, body: object}
	case 2:
		return request{method: "PUT", path: at + query, body: object}
	case 3:
		return request{method: "PATCH", path: at + query, contentType: mergePatch, body: fmt.Sprintf(`{"metadata":{%s},%s}`, meta, content)}
	case 4, 5:
		// Null is not applied: whether it removes what others own depends on the history of the field.
		object = strings.NewReplacer(`"finalizers":null`, `"finalizers":[]`, `{"a":null}`, `{"a":"1"}`).Replace(object)
		return request{method: "PATCH", path: at + apply, contentType: string(types.ApplyPatchType), body: object}
	case 6:
		patch := pick(`[{"op":"test","path":"/metadata/resourceVersion","value":"@version"},{"op":"add","path":"/metadata/labels","value":{"c":"3"}}]`,
			`[{"op":"test","path":"/metadata/uid","value":"@former"}]`, `[{"op":"remove","path":"/metadata/finalizers"}]`,
			`[{"op":"replace","path":"/metadata/resourceVersion","value":"@stale"}]`)
		return request{method: "PATCH", path: at + query, contentType: string(types.JSONPatchType), body: patch}
	case 7:
		if kind == "Secret" {
			return request{method: "GET", path: at}
		}
		status := pick(`"status":{"address":"a"}`, `"status":{"conditions":[{"type":"Ready","status":"True"}]}`, `"status":{"conditions":[{"type":"Synced"}]}`,
			`"spec":{"size":9}`, `"status":null`)
		// An apply of nothing but reset fields makes a new resource version of kube-apiserver's objects, and not of these.
		if rng.IntN(2) == 0 && !strings.Contains(status, "spec") && !strings.Contains(status, "null") {
			return request{method: "PATCH", path: at + "/status" + apply, contentType: string(types.ApplyPatchType),
				body: fmt.Sprintf(`{"apiVersion":%q,"kind":%q,"metadata":{"name":%q},%s}`, apiVersion, kind, name, status)}
		}
		return request{method: "PATCH", path: at + "/status" + query, contentType: mergePatch, body: fmt.Sprintf(`{"metadata":{%s},%s}`, meta, status)}
	case 8:
		options := pick(`{}`, `{"preconditions":{"uid":"@uid"}}`, `{"preconditions":{"uid":"@former"}}`, `{"preconditions":{"resourceVersion":"@stale"}}`,
			`{"propagationPolicy":"Foreground"}`, `{"propagationPolicy":"Background"}`, `{"propagationPolicy":"Orphan"}`, `{"dryRun":["All"]}`)
		return request{method: "DELETE", path: at, body: options}
	case 9:
		if kind == "Widget" && rng.IntN(3) == 0 {
			path = everyWidget
		}
		selector := pick("", "?labelSelector=a%3D1", "?labelSelector=a", "?labelSelector=%21a", "?labelSelector=a+in+%281,2%29,b", "?labelSelector=%3D%3D",
			"?fieldSelector=metadata.name%3Dx", "?fieldSelector=metadata.namespace%3Dteam", "?fieldSelector=spec.size%3D1", "?limit=5")
		return request{method: "GET", path: path + selector, as: pick("", "PartialObjectMetadataList")}
	}
	return request{method: "GET", path: at, as: pick("", "PartialObjectMetadata")}
}

// walk sends random requests, and opens the watches again now and then.
func (p *pair) walk(rng *rand.Rand, requests int) {
	p.T.Helper()
	for i := range requests {
		if i%100 == 0 {
			p.follow()
		}
		// The controller of namespaces removes what these set, sooner or later.
		if r := randomRequest(rng); !p.leaving || !strings.Contains(r.body, "propagationPolicy") {
			p.send(r)
		}
	}
}

// TestSameAsReal sends random requests to this server and to kube-apiserver, and compares the answers and the events.
func TestSameAsReal(t *testing.T) {
	t.Parallel()
	env, err := servers.Start()
	if err != nil {
		t.Fatal(err)
	}
	transport, err := rest.TransportFor(env.Config)
	if err != nil {
		t.Fatal(err)
	}
	kube := &side{name: "kube-apiserver", http: transport, host: strings.TrimSuffix(env.Config.Host, "/")}
	startNamespaceController(t, env)
	first, err := strconv.ParseUint(os.Getenv("MASTHEAD_EXPLORE_SEED"), 10, 64)
	if err != nil {
		first = 1
	}
	const seeds = 2
	c := controllertest.NewClient(t, env.Config, runtime.NewScheme())
	for seed := first; seed < first+seeds; seed++ {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			t.Parallel()
			p := &pair{Case: &controllertest.Case{T: t, Ctx: t.Context(), Patience: time.Minute}, server: New("memory", time.Now), client: c}
			ours := &side{name: "ours", http: p.server, host: "http://memory.invalid"}
			p.kube, p.ours = kube.in(seed, "team"), ours.in(seed, "team")
			p.run(rand.New(rand.NewPCG(seed, 0)), seed)
		})
	}
}

// in returns the same server for the kind and the namespace of a test.
func (s *side) in(seed uint64, namespace string) *side {
	return &side{
		name: s.name, http: s.http, host: s.host, watches: s.watches, versions: map[string][]string{}, uids: map[string][]string{},
		rename: strings.NewReplacer("example.org", fmt.Sprintf("s%d.example.org", seed), "team", fmt.Sprintf("%s-%d", namespace, seed)),
	}
}

// startNamespaceController runs the controller that empties namespaces. The garbage collector would write in the middle
// of a walk.
func startNamespaceController(t *testing.T, env *envtest.Environment) {
	t.Helper()
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(kubeconfig, env.KubeConfig, 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(filepath.Join(env.BinaryAssetsDirectory, "kube-controller-manager"), "--kubeconfig="+kubeconfig,
		"--leader-elect=false", "--secure-port=0", "--controllers=namespace-controller", "--kube-api-qps=200", "--kube-api-burst=400")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
}

// run compares the servers while the kind and the namespace of the objects come and go.
func (p *pair) run(rng *rand.Rand, seed uint64) {
	probe := request{method: "POST", path: widgets + "?dryRun=All", body: widget("probe", "")}
	edit := request{method: "PATCH", path: kinds + "/widgets.example.org", contentType: mergePatch, body: definition}

	p.both(request{method: "POST", path: "/api/v1/namespaces", body: namespaceObject})
	p.both(request{method: "POST", path: kinds, body: definition})
	p.until(http.StatusCreated, probe)
	p.walk(rng, 300)

	closed := edit
	closed.body = strings.Replace(definition, `{"openAPIV3Schema":{`, `{"openAPIV3Schema":{"x-kubernetes-validations":[{"rule":"false"}],`, 1)
	for _, change := range []struct {
		request
		code int
	}{{closed, http.StatusUnprocessableEntity}, {edit, http.StatusCreated}} {
		p.both(change.request)
		p.until(change.code, probe)
		p.ended()
		p.walk(rng, 100)
	}

	first := []*side{p.kube, p.ours}
	p.emptied(rng, probe, request{method: "DELETE", path: team})
	p.kube, p.ours = p.kube.in(seed, "other"), p.ours.in(seed, "other")
	p.both(request{method: "POST", path: "/api/v1/namespaces", body: namespaceObject})
	p.until(http.StatusCreated, probe)
	p.emptied(rng, probe, request{method: "DELETE", path: edit.path})
	p.ended()
	p.until(http.StatusNotFound, request{method: "GET", path: edit.path})
	p.kube, p.ours = first[0], first[1]
	p.until(http.StatusNotFound, request{method: "GET", path: team})
}
