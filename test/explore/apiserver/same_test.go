// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/masthead-dev/masthead/internal/test/controllertest"
)

var servers controllertest.Servers

func TestMain(m *testing.M) { servers.Run(m) }

// side is one of two API servers that get the same requests.
type side struct {
	name string
	http http.RoundTripper
	host string

	// versions and uids are those of each object so far, by path, oldest first.
	versions, uids map[string][]string
}

// request is a request in which @version, @stale, @uid and @former stand for what the server has given an object.
type request struct {
	method, path, contentType, body string
}

// answer is what two servers have to agree on.
type answer struct {
	Code   int
	Reason any
	Object any
}

func (s *side) send(t *testing.T, r request) answer {
	t.Helper()
	object, _, _ := strings.Cut(r.path, "?")
	object = strings.TrimSuffix(object, "/status")
	last := func(of map[string][]string, back int) string {
		if n := len(of[object]); n > back {
			return of[object][n-1-back]
		}
		return "1" // No object has this version.
	}
	body := strings.NewReplacer("@version", last(s.versions, 0), "@stale", last(s.versions, 1),
		"@uid", last(s.uids, 0), "@former", last(s.uids, 1)).Replace(r.body)
	req, err := http.NewRequestWithContext(t.Context(), r.method, s.host+r.path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", r.contentType)
	req.Header.Set("User-Agent", "tester/1")
	req.Header.Set("Accept", "application/json")
	resp, err := s.http.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
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
	if !strings.Contains(r.path, "dryRun") {
		s.note(s.versions, object, meta["resourceVersion"])
		s.note(s.uids, object, meta["uid"])
	}
	return answer{Code: resp.StatusCode, Object: s.comparable(object, out)}
}

func (s *side) note(in map[string][]string, object string, value any) {
	if text, ok := value.(string); ok && !slices.Contains(in[object], text) {
		in[object] = append(in[object], text)
	}
}

// comparable replaces what differs between any two servers by which of an object's values it is.
func (s *side) comparable(object string, out map[string]any) any {
	meta, _ := out["metadata"].(map[string]any)
	if uid, ok := meta["uid"].(string); ok {
		meta["uid"] = slices.Index(s.uids[object], uid)
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

const definition = `{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"widgets.example.org"},
"spec":{"group":"example.org","scope":"Namespaced","names":{"plural":"widgets","kind":"Widget","singular":"widget","listKind":"WidgetList"},
"versions":[{"name":"v1","served":true,"storage":true,"subresources":{"status":{}},"schema":{"openAPIV3Schema":{"type":"object","properties":{
"spec":{"type":"object","properties":{"size":{"type":"integer","minimum":1},"policy":{"type":"string","default":"Background"},
"ref":{"type":"object","properties":{"name":{"type":"string"}}},"free":{"type":"object","x-kubernetes-preserve-unknown-fields":true},
"tags":{"type":"array","items":{"type":"string"}}}},
"status":{"type":"object","properties":{"address":{"type":"string"},"conditions":{"type":"array","x-kubernetes-list-type":"map",
"x-kubernetes-list-map-keys":["type"],"items":{"type":"object","required":["type","status"],"properties":{"type":{"type":"string"},"status":{"type":"string"}}}}}}}}}}]}}`

// prepare makes the namespaces and the kind of the test.
func (s *side) prepare(t *testing.T, settle func()) {
	t.Helper()
	for _, r := range []request{
		{"POST", "/api/v1/namespaces", "application/json", `{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"team"}}`},
		{"POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", "application/json", definition},
	} {
		if a := s.send(t, r); a.Code != http.StatusCreated {
			t.Fatalf("%s: %s %s: %v", s.name, r.method, r.path, a)
		}
	}
	settle()
	c := &controllertest.Case{T: t, Ctx: t.Context(), Patience: 2 * time.Minute}
	c.Within("the kind is served", func() error {
		if a := s.send(t, request{"GET", "/apis/example.org/v1/namespaces/team/widgets/none", "", ""}); a.Reason != "NotFound" || a.Code != 404 {
			return fmt.Errorf("%v", a)
		}
		if a := s.send(t, request{"GET", "/apis/example.org/v1/namespaces/team/widgets", "", ""}); a.Code != http.StatusOK {
			return fmt.Errorf("%v", a)
		}
		return nil
	})
}

// randomRequest returns a request about one of a few objects.
func randomRequest(rng *rand.Rand) request {
	pick := func(options ...string) string { return options[rng.IntN(len(options))] }
	kind := pick("Widget", "Widget", "Widget", "Secret")
	path, apiVersion := "/apis/example.org/v1/namespaces/team/widgets", "example.org/v1"
	content := pick(`"spec":{"size":1}`, `"spec":{"size":2,"tags":["a"]}`, `"spec":{"size":0}`, `"spec":{"ref":{"name":"x"},"unknown":1}`,
		`"spec":{"size":"text"}`, `"spec":{"policy":null,"free":{"a":{"b":1}}}`, `"spec":{"free":{}},"status":{"address":"y"}`, `"spec":{}`)
	if kind == "Secret" {
		path, apiVersion = "/api/v1/namespaces/team/secrets", "v1"
		content = pick(`"data":{"a":"eA=="}`, `"data":{"a":"eQ==","b":"eA=="}`, `"data":{}`, `"type":"example.org/x"`)
	}
	if rng.IntN(12) == 0 {
		path = strings.Replace(path, "/team/", "/missing/", 1)
	}
	name := pick("x", "y")
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
	switch rng.IntN(10) {
	case 0, 1:
		return request{"POST", path + query, "application/json", object}
	case 2:
		return request{"PUT", at + query, "application/json", object}
	case 3:
		return request{"PATCH", at + query, string(types.MergePatchType), fmt.Sprintf(`{"metadata":{%s},%s}`, meta, content)}
	case 4, 5:
		// Null is not applied: whether it removes what others own depends on the history of the field.
		object = strings.NewReplacer(`"finalizers":null`, `"finalizers":[]`, `{"a":null}`, `{"a":"1"}`).Replace(object)
		return request{"PATCH", at + apply, string(types.ApplyPatchType), object}
	case 6:
		patch := pick(`[{"op":"test","path":"/metadata/resourceVersion","value":"@version"},{"op":"add","path":"/metadata/labels","value":{"c":"3"}}]`,
			`[{"op":"test","path":"/metadata/uid","value":"@former"}]`, `[{"op":"remove","path":"/metadata/finalizers"}]`,
			`[{"op":"replace","path":"/metadata/resourceVersion","value":"@stale"}]`)
		return request{"PATCH", at + query, string(types.JSONPatchType), patch}
	case 7:
		if kind == "Secret" {
			return request{"GET", at, "", ""}
		}
		status := pick(`"status":{"address":"a"}`, `"status":{"conditions":[{"type":"Ready","status":"True"}]}`, `"status":{"conditions":[{"type":"Synced"}]}`,
			`"spec":{"size":9}`, `"status":null`)
		// An apply of nothing but reset fields makes a new resource version of kube-apiserver's objects, and not of these.
		if rng.IntN(2) == 0 && !strings.Contains(status, "spec") && !strings.Contains(status, "null") {
			return request{"PATCH", at + "/status" + apply, string(types.ApplyPatchType),
				fmt.Sprintf(`{"apiVersion":%q,"kind":%q,"metadata":{"name":%q},%s}`, apiVersion, kind, name, status)}
		}
		return request{"PATCH", at + "/status" + query, string(types.MergePatchType), fmt.Sprintf(`{"metadata":{%s},%s}`, meta, status)}
	case 8:
		options := pick(`{}`, `{"preconditions":{"uid":"@uid"}}`, `{"preconditions":{"uid":"@former"}}`, `{"preconditions":{"resourceVersion":"@stale"}}`,
			`{"propagationPolicy":"Foreground"}`, `{"propagationPolicy":"Background"}`, `{"propagationPolicy":"Orphan"}`, `{"dryRun":["All"]}`)
		return request{"DELETE", at, "application/json", options}
	}
	return request{"GET", at, "", ""}
}

// TestSameAsReal sends random requests to this server and to kube-apiserver, and compares the answers.
func TestSameAsReal(t *testing.T) {
	env, err := servers.Start()
	if err != nil {
		t.Fatal(err)
	}
	transport, err := rest.TransportFor(env.Config)
	if err != nil {
		t.Fatal(err)
	}
	kube := &side{name: "kube-apiserver", http: transport, host: strings.TrimSuffix(env.Config.Host, "/"), versions: map[string][]string{}, uids: map[string][]string{}}
	server := New("memory", time.Now)
	ours := &side{name: "ours", http: server, host: "http://memory.invalid", versions: map[string][]string{}, uids: map[string][]string{}}
	kube.prepare(t, func() {})
	ours.prepare(t, func() {
		for steps := server.Pending(); len(steps) > 0; steps = server.Pending() {
			server.Run(steps[0])
		}
	})
	const seed = 1
	rng := rand.New(rand.NewPCG(seed, 0))
	differences := 0
	for i := range 4000 {
		r := randomRequest(rng)
		want, got := kube.send(t, r), ours.send(t, r)
		if !reflect.DeepEqual(want, got) {
			wantText, _ := json.Marshal(want)
			gotText, _ := json.Marshal(got)
			t.Errorf("request %d: %s %s %s %s\nwant %s\ngot  %s", i, r.method, r.path, r.contentType, r.body, wantText, gotText)
			if differences++; differences == 5 {
				t.FailNow()
			}
		}
	}
}
