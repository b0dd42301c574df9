// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package manyclusters

import (
	"bytes"
	"context"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/client-go/rest"

	"github.com/masthead-dev/masthead/test/bench/auditlog"
)

const (
	kubeSystem = "kube-system"
	// domain is that of the server names. The certificate of httptest is valid for its hosts.
	domain = ".example.com"
)

// Proxy plays the clusters.
type Proxy struct {
	server   *httptest.Server
	client   *http.Client
	host     string
	uid      string
	clusters map[string]*cluster

	ctx    context.Context
	cancel context.CancelFunc
	wait   sync.WaitGroup

	mu     sync.Mutex
	views  map[string]*view
	counts auditlog.Counts
}

// cluster is one that is played.
type cluster struct {
	name, token string
	// replaced are pairs: what the API server sends, and what the cluster sends instead.
	replaced [][2][]byte
	watches  atomic.Int64
}

// Name is the name of the ith cluster.
func Name(i int) string { return fmt.Sprintf("c%d", i) }

// Namespace is the namespace of the API server that is a namespace of a cluster.
func Namespace(cluster, namespace string) string { return cluster + "-" + namespace }

// Start plays n clusters on an API server, with the rights of config, until Close.
func Start(ctx context.Context, config *rest.Config, n int) (*Proxy, error) {
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("cannot create a client for the API server: %w", err)
	}
	p := &Proxy{
		client: client, host: strings.TrimSuffix(config.Host, "/"),
		clusters: map[string]*cluster{}, views: map[string]*view{}, counts: auditlog.Counts{},
	}
	p.ctx, p.cancel = context.WithCancel(ctx)
	if p.uid, err = p.kubeSystemUID(); err != nil {
		p.cancel()
		return nil, err
	}
	for i := range n {
		c := &cluster{name: Name(i), token: fmt.Sprintf("token-%d", i)}
		uid := fmt.Appendf(nil, "%08x-0000-4000-8000-000000000000", i)
		c.replaced = [][2][]byte{prefix(c.name), {[]byte(p.uid), uid}}
		p.clusters[c.name] = c
	}
	p.server = httptest.NewUnstartedServer(p)
	p.server.EnableHTTP2 = true
	// It would report the connections of a manager that is killed.
	p.server.Config.ErrorLog = log.New(io.Discard, "", 0)
	p.server.Config.BaseContext = func(net.Listener) context.Context { return p.ctx }
	p.server.StartTLS()
	return p, nil
}

// Close ends every connection and every goroutine.
func (p *Proxy) Close() {
	p.cancel()
	p.server.CloseClientConnections()
	p.server.Close()
	p.wait.Wait()
	p.client.CloseIdleConnections()
}

func (p *Proxy) kubeSystemUID() (string, error) {
	a, err := p.send(p.ctx, http.MethodGet, "/api/v1/namespaces/"+kubeSystem, nil, nil)
	if err != nil {
		return "", fmt.Errorf("cannot get the namespace kube-system: %w", err)
	}
	var namespace object
	if err := json.Unmarshal(a.body, &namespace); err != nil || namespace.Metadata.UID == "" {
		return "", fmt.Errorf("cannot get the namespace kube-system: the API server answers %d: %s", a.code, a.body)
	}
	return namespace.Metadata.UID, nil
}

// Config is the way to a cluster.
func (p *Proxy) Config(name string) *rest.Config {
	return &rest.Config{
		Host: p.server.URL, BearerToken: p.clusters[name].token, QPS: -1,
		// Only JSON can be translated.
		ContentConfig:   rest.ContentConfig{ContentType: "application/json"},
		TLSClientConfig: rest.TLSClientConfig{ServerName: name + domain, CAData: p.ca()},
	}
}

func (p *Proxy) ca() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: p.server.Certificate().Raw})
}

// Kubeconfig is the same in a file.
func (p *Proxy) Kubeconfig(name string) ([]byte, error) {
	named := func(what string, content any) []any { return []any{map[string]any{"name": "c", what: content}} }
	return json.Marshal(map[string]any{
		"apiVersion": "v1", "kind": "Config", "current-context": "c",
		"contexts": named("context", map[string]any{"cluster": "c", "user": "c"}),
		"users":    named("user", map[string]any{"token": p.clusters[name].token}),
		"clusters": named("cluster", map[string]any{
			"server": p.server.URL, "tls-server-name": name + domain, "certificate-authority-data": p.ca(),
		}),
	})
}

// Watches is the number of watches of a cluster that have delivered what there is.
func (p *Proxy) Watches(name string) int { return int(p.clusters[name].watches.Load()) }

// Requests are those of all clusters until now. No user is distinguished.
func (p *Proxy) Requests() auditlog.Counts {
	p.mu.Lock()
	defer p.mu.Unlock()
	return maps.Clone(p.counts)
}

//nolint:gochecknoglobals // A constant.
var infos = request.RequestInfoFactory{
	APIPrefixes: sets.NewString("api", "apis"), GrouplessAPIPrefixes: sets.NewString("api"),
}

// ServeHTTP answers a request to one of the clusters, which the server name of the connection tells.
func (p *Proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c := p.clusters[strings.TrimSuffix(r.TLS.ServerName, domain)]
	if c == nil || r.Header.Get("Authorization") != "Bearer "+c.token {
		write(w, http.StatusUnauthorized, failure(http.StatusUnauthorized, "Unauthorized"))
		return
	}
	info, err := infos.NewRequestInfo(r)
	if err != nil {
		write(w, http.StatusBadRequest, failure(http.StatusBadRequest, "BadRequest"))
		return
	}
	p.count(info)
	if info.Verb == "list" || info.Verb == "watch" {
		p.collection(w, r, c, info)
		return
	}
	p.pass(w, r, c, info)
}

func (p *Proxy) count(info *request.RequestInfo) {
	counted := auditlog.Request{Verb: info.Verb, Resource: info.Resource}
	if info.Subresource != "" {
		counted.Resource += "/" + info.Subresource
	}
	if !info.IsResourceRequest {
		counted.Resource = info.Path
	}
	if info.Verb == "get" && info.Namespace == "" || info.Name == kubeSystem {
		counted.Name = info.Name
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.counts[counted]++
}

// pass lets the API server answer.
func (p *Proxy) pass(w http.ResponseWriter, r *http.Request, c *cluster, info *request.RequestInfo) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	path := r.URL.Path
	if info.IsResourceRequest && info.Namespace != "" && info.Namespace != kubeSystem {
		path = strings.Replace(path, "/namespaces/", "/namespaces/"+c.name+"-", 1)
		body = bytes.ReplaceAll(body, []byte(`"namespace":"`), []byte(`"namespace":"`+c.name+"-"))
	}
	if r.URL.RawQuery != "" {
		path += "?" + r.URL.RawQuery
	}
	a, err := p.send(r.Context(), r.Method, path, body, http.Header{
		"Accept": {acceptJSON(r.Header.Get("Accept"))}, "Content-Type": r.Header["Content-Type"],
		"User-Agent": r.Header["User-Agent"],
	})
	if err != nil {
		write(w, http.StatusBadGateway, failure(http.StatusBadGateway, err.Error()))
		return
	}
	// Some answers, such as that of /readyz, are plain text.
	w.Header().Set("Content-Type", a.contentType)
	w.WriteHeader(a.code)
	_, _ = w.Write(c.translate(a.body))
}

// prefix is the pair for the namespaces of a cluster.
func prefix(name string) [2][]byte { return [2][]byte{[]byte(`"` + name + "-"), []byte(`"`)} }

// translate returns what the API server sends as the cluster would send it.
func (c *cluster) translate(data []byte) []byte {
	for _, r := range c.replaced {
		data = bytes.ReplaceAll(data, r[0], r[1])
	}
	return data
}

// acceptJSON removes the formats that cannot be translated.
func acceptJSON(accept string) string {
	var kept []string
	for format := range strings.SplitSeq(accept, ",") {
		if strings.Contains(format, "json") {
			kept = append(kept, format)
		}
	}
	return strings.Join(append(kept, "application/json"), ",")
}

// answer is what the API server sends.
type answer struct {
	code        int
	contentType string
	body        []byte
}

func (p *Proxy) send(ctx context.Context, method, path string, body []byte, header http.Header) (answer, error) {
	resp, err := p.open(ctx, method, path, body, header)
	if err != nil {
		return answer{}, err
	}
	defer func() { _ = resp.Body.Close() }()
	content, err := io.ReadAll(resp.Body)
	return answer{resp.StatusCode, resp.Header.Get("Content-Type"), content}, err
}

func (p *Proxy) open(
	ctx context.Context, method, path string, body []byte, header http.Header,
) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, method, p.host+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	maps.Copy(req.Header, header)
	return p.client.Do(req)
}

func write(w http.ResponseWriter, code int, body []byte) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_, _ = w.Write(body)
}

// failure is an answer of the proxy itself.
func failure(code int, reason string) []byte {
	const format = `{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","reason":%q,"code":%d}`
	return fmt.Appendf(nil, format, reason, code)
}
