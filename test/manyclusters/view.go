// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package manyclusters

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"

	"k8s.io/apiserver/pkg/endpoints/request"
)

// acceptMetadata is what a client accepts that is only interested in metadata.
const acceptMetadata = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"

// initialEnd is the annotation of the bookmark after the initial events of a watch.
const initialEnd = "k8s.io/initial-events-end"

// object is the part of an object that is read.
type object struct {
	Kind       string `json:"kind"`
	APIVersion string `json:"apiVersion"`
	Metadata   struct {
		Name            string            `json:"name"`
		Namespace       string            `json:"namespace"`
		UID             string            `json:"uid"`
		ResourceVersion string            `json:"resourceVersion"`
		Annotations     map[string]string `json:"annotations"`
	} `json:"metadata"`
}

// kept is the JSON of an object, as its cluster would send it, and its namespace there.
type kept struct {
	namespace string
	json      []byte
}

type event struct {
	kept

	kind    string
	version int64
}

// view is what is known of a kind, by one watch of the API server. A view that has ended is not used again: its watches
// end, and the next request begins another.
type view struct {
	path  string
	query url.Values
	// accept is the format.
	accept string
	// namespaces means that the objects are namespaces.
	namespaces bool

	// known is closed when the objects are complete, or the view has ended.
	known chan struct{}

	mu sync.Mutex
	// code and answer are those of the API server that ended the view before the objects were complete.
	code     int
	answer   []byte
	complete bool
	ended    bool
	version  int64
	// bookmark is the latest.
	bookmark object
	// objects are by cluster and by namespace and name. Those of the cluster "" are shared.
	objects map[string]map[string]kept
	feeds   map[string]*feed
}

// view returns the view that answers a request, and begins it if there is none.
func (p *Proxy) view(r *http.Request, c *cluster, info *request.RequestInfo) *view {
	path := r.URL.Path
	if info.Namespace != "" {
		path = strings.Replace(path, "/namespaces/"+info.Namespace+"/", "/", 1)
	}
	query := url.Values{}
	for _, selector := range []string{"labelSelector", "fieldSelector"} {
		if s := r.URL.Query().Get(selector); s != "" {
			query.Set(selector, strings.ReplaceAll(s, "metadata.namespace=", "metadata.namespace="+c.name+"-"))
		}
	}
	accept := "application/json"
	if strings.Contains(r.Header.Get("Accept"), "PartialObjectMetadata") {
		accept = acceptMetadata
	}
	key := path + "?" + query.Encode() + "#" + accept
	p.mu.Lock()
	defer p.mu.Unlock()
	if v := p.views[key]; v != nil {
		return v
	}
	v := &view{
		path: path, query: query, accept: accept, namespaces: info.APIGroup == "" && info.Resource == "namespaces",
		known: make(chan struct{}), objects: map[string]map[string]kept{}, feeds: map[string]*feed{},
	}
	p.views[key] = v
	p.wait.Go(func() {
		code, answer := v.follow(p)
		p.mu.Lock()
		delete(p.views, key)
		p.mu.Unlock()
		v.end(code, answer)
	})
	return v
}

// follow watches until that fails, and returns the answer of the API server, or one instead of it.
func (v *view) follow(p *Proxy) (code int, answer []byte) {
	query := url.Values{
		"watch": {"true"}, "allowWatchBookmarks": {"true"},
		"sendInitialEvents": {"true"}, "resourceVersionMatch": {"NotOlderThan"},
	}
	maps.Copy(query, v.query)
	for {
		resp, err := p.open(p.ctx, http.MethodGet, v.path+"?"+query.Encode(), nil, http.Header{"Accept": {v.accept}})
		if err != nil {
			return http.StatusBadGateway, failure(http.StatusBadGateway, err.Error())
		}
		if resp.StatusCode != http.StatusOK {
			answer, _ := io.ReadAll(resp.Body)
			_ = resp.Body.Close()
			return resp.StatusCode, answer
		}
		err = v.read(resp.Body)
		_ = resp.Body.Close()
		if !errors.Is(err, io.EOF) || !v.complete {
			return http.StatusBadGateway, failure(http.StatusBadGateway, err.Error())
		}
		// An API server ends each watch after some minutes.
		query.Del("sendInitialEvents")
		query.Del("resourceVersionMatch")
		query.Set("resourceVersion", strconv.FormatInt(v.version, 10))
	}
}

func (v *view) read(stream io.Reader) error {
	decoder := json.NewDecoder(stream)
	for {
		var e struct {
			Type   string          `json:"type"`
			Object json.RawMessage `json:"object"`
		}
		if err := decoder.Decode(&e); err != nil {
			return err
		}
		if e.Type == "ERROR" {
			return fmt.Errorf("the watch has failed: %s", e.Object)
		}
		if err := v.take(e.Type, e.Object); err != nil {
			return err
		}
	}
}

// take keeps an event, and hands it to the watches that get it.
func (v *view) take(kind string, data []byte) error {
	var o object
	if err := json.Unmarshal(data, &o); err != nil {
		return fmt.Errorf("cannot parse an object: %w", err)
	}
	version, err := strconv.ParseInt(o.Metadata.ResourceVersion, 10, 64)
	if err != nil {
		return fmt.Errorf("cannot parse a resource version: %w", err)
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.version = version
	if kind == "BOOKMARK" {
		v.bookmark = o
		if o.Metadata.Annotations[initialEnd] != "" {
			v.complete = true
			close(v.known)
			return nil
		}
		v.feed("", event{kind: kind, version: version, kept: kept{json: data}})
		return nil
	}
	in, namespace, visible := v.place(o)
	if !visible {
		return nil
	}
	k := kept{namespace: namespace, json: data}
	if in != "" {
		k.json = bytes.ReplaceAll(data, prefix(in)[0], prefix(in)[1])
	}
	if v.objects[in] == nil {
		v.objects[in] = map[string]kept{}
	}
	key := o.Metadata.Namespace + "/" + o.Metadata.Name
	if kind == "DELETED" {
		delete(v.objects[in], key)
	} else {
		v.objects[in][key] = k
	}
	v.feed(in, event{kind: kind, version: version, kept: k})
	return nil
}

// feed hands an event to a cluster that gets it, or to all.
func (v *view) feed(in string, e event) {
	if f := v.feeds[in]; f != nil {
		f.add(e)
	}
	if in == "" {
		for _, f := range v.feeds {
			f.add(e)
		}
	}
}

// place returns the cluster that has an object, or "" if all have, and the object's namespace there.
func (v *view) place(o object) (in, namespace string, visible bool) {
	mapped := o.Metadata.Namespace
	switch {
	case v.namespaces && o.Metadata.Name == kubeSystem:
		return "", "", true
	case v.namespaces:
		mapped = o.Metadata.Name
	case mapped == "":
		return "", "", true
	}
	in, namespace, visible = strings.Cut(mapped, "-")
	if v.namespaces {
		namespace = ""
	}
	return in, namespace, visible
}

func (v *view) end(code int, answer []byte) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.code, v.answer, v.ended = code, answer, true
	if !v.complete {
		close(v.known)
	}
	for _, f := range v.feeds {
		f.wake()
	}
}

// wait waits until the view is known, and returns the answer of the API server if there is nothing to know.
func (v *view) wait(ctx context.Context) (code int, answer []byte, err error) {
	select {
	case <-v.known:
	case <-ctx.Done():
		return 0, nil, ctx.Err()
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if !v.complete {
		return v.code, v.answer, nil
	}
	return http.StatusOK, nil, nil
}

// each calls a function for the objects of a cluster, in a namespace if it is not empty. The caller holds mu.
func (v *view) each(c *cluster, namespace string, call func([]byte)) {
	for _, in := range []string{"", c.name} {
		for _, k := range v.objects[in] {
			if namespace == "" || k.namespace == namespace {
				call(k.json)
			}
		}
	}
}

// feedTo returns what the watches of a cluster get. The caller holds mu.
func (v *view) feedTo(c *cluster) *feed {
	f := v.feeds[c.name]
	if f == nil {
		f = &feed{since: v.version, changed: make(chan struct{})}
		v.feeds[c.name] = f
	}
	return f
}
