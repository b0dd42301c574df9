// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/streaming/pkg/httpstream"
	"k8s.io/streaming/pkg/httpstream/spdy"
)

func metricsText(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("cost", "testdata", "first.txt"))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestTopOfFile(t *testing.T) {
	f, _ := start(t)
	out, errOut, code := f.runWith(t, metricsText(t), "top", "--metrics-file", "-")
	if code != 0 {
		t.Fatal(errOut)
	}
	wantLines(t, out, "", `\ACLUSTER +MEMORY +OBJECTS +REQUESTS +QUEUED`, `\A.*\nkubeconfig/edge/shop +2Mi +0 +400 +7 +1$`, `^capi/default/w1 +1Mi +12 +150 +0 +0$`)
	wantLines(t, errOut, "", `^manager v0.1.0: 100Mi resident, 3Mi of the budget of 80Mi in use$`)
	out, _, _ = f.runWith(t, metricsText(t), "top", "--metrics-file=-", "--sort-by=objects", "-o", "wide")
	wantLines(t, out, "", `\A.*\ncapi/default/w1 +1Mi +12 +150 +0 +0 +4 +2 +1 +5 +120 +0 +0 +30 +1.50s$`)
	out, _, _ = f.runWith(t, metricsText(t), "top", "controllers", "--metrics-file=-")
	wantLines(t, out, "", `^agent +110 +10 +100ms +7 +2 +64$`)
	out, _, _ = f.runWith(t, metricsText(t), "top", "--metrics-file=-", "-o", "json")
	wantLines(t, out, "", `"name": "kubeconfig/edge/shop"`, `"bytes": 2097152`)
	evil := strings.ReplaceAll(metricsText(t), `"shop"`, "\"sh\x1b[31mop\"")
	if out, _, _ = f.runWith(t, evil, "top", "--metrics-file=-"); strings.Contains(out, "\x1b") {
		t.Errorf("what a terminal obeys is taken out, got %q", out)
	}
	for _, wrong := range [][]string{{"--metrics-file=-", "--metrics-url=http://x"}, {"--sort-by=beauty"}, {"--interval=-1s"}, {"--service-account=x"}} {
		if _, errOut, code = f.run(t, append([]string{"top"}, wrong...)...); code != exitMisused {
			t.Errorf("%v cannot be understood, got %d %s", wrong, code, errOut)
		}
	}
}

// managerPods stands before the API server of the hub, and connects port forwarding to an address instead of a kubelet,
// which does not exist in a test.
func managerPods(t *testing.T, cfg *rest.Config, address string) (server string) {
	t.Helper()
	transport, err := rest.TransportFor(cfg)
	if err != nil {
		t.Fatal(err)
	}
	upstream, err := url.Parse(cfg.Host)
	if err != nil {
		t.Fatal(err)
	}
	proxy := httputil.NewSingleHostReverseProxy(upstream)
	proxy.Transport = transport
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if !strings.HasSuffix(req.URL.Path, "/portforward") {
			proxy.ServeHTTP(w, req)
			return
		}
		if _, err := httpstream.Handshake(req, w, []string{"portforward.k8s.io"}); err != nil {
			t.Error(err)
			return
		}
		streams := make(chan httpstream.Stream)
		connection := spdy.NewResponseUpgrader().UpgradeResponse(w, req, func(stream httpstream.Stream, _ <-chan struct{}) error {
			go func() { streams <- stream }()
			return nil
		})
		for {
			select {
			case <-connection.CloseChan():
				return
			case stream := <-streams:
				if stream.Headers().Get(corev1.StreamType) == corev1.StreamTypeData {
					go forward(t, stream, address)
				}
			}
		}
	}))
	t.Cleanup(s.Close)
	return s.URL
}

func forward(t *testing.T, stream httpstream.Stream, address string) {
	t.Helper()
	if port := stream.Headers().Get(corev1.PortHeader); port != "9443" {
		t.Errorf("want the port that is called metrics, got %s", port)
	}
	var dialer net.Dialer
	conn, err := dialer.DialContext(t.Context(), "tcp", address)
	if err != nil {
		t.Error(err)
		return
	}
	go func() {
		_, _ = io.Copy(conn, stream)
		_ = conn.Close()
	}()
	_, _ = io.Copy(stream, conn)
	_ = stream.Close()
}

func TestTopOfManager(t *testing.T) {
	f, ns := start(t)
	cfg, err := clientcmd.RESTConfigFromKubeConfig(f.contents["hub"])
	if err != nil {
		t.Fatal(err)
	}
	var scrapes atomic.Int64
	var token atomic.Value
	metrics := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		token.Store(req.Header.Get("Authorization"))
		text := metricsText(t)
		if scrapes.Add(1) > 1 {
			text = strings.ReplaceAll(text, `verb="patch"} 30`, `verb="patch"} 3000`)
		}
		_, _ = io.WriteString(w, text)
	}))
	t.Cleanup(metrics.Close)
	file := filepath.Join(t.TempDir(), "kubeconfig")
	content := fmt.Sprintf(`{apiVersion: v1, kind: Config, current-context: c, contexts: [{name: c, context: {cluster: c}}], clusters: [{name: c, cluster: {server: "%s"}}]}`,
		managerPods(t, cfg, metrics.Listener.Addr().String()))
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	run := func(arguments ...string) (string, string, int) {
		return f.run(t, append([]string{"--kubeconfig", file, "top"}, arguments...)...)
	}
	if _, errOut, code := run(); code != exitFailed || !strings.Contains(errOut, "no Pod of the manager runs") {
		t.Errorf("without a manager, that is said; got %d %s", code, errOut)
	}
	for _, document := range []string{
		`{apiVersion: v1, kind: Pod, metadata: {name: masthead-waits, namespace: NS, labels: {app.kubernetes.io/name: masthead}},
 spec: {containers: [{name: manager, image: x}]}, status: {phase: Running}}`,
		`{apiVersion: v1, kind: Pod, metadata: {name: masthead-works, namespace: NS, labels: {app.kubernetes.io/name: masthead}},
 spec: {containers: [{name: manager, image: x, ports: [{name: metrics, containerPort: 9443}]}]}, status: {phase: Running}}`,
		`{apiVersion: coordination.k8s.io/v1, kind: Lease, metadata: {name: masthead-leader, namespace: NS}, spec: {holderIdentity: masthead-works_1f}}`,
	} {
		apply(t, f.hub, strings.ReplaceAll(document, "NS", ns))
	}
	if _, errOut, code := run(); code != exitFailed || !strings.Contains(errOut, "no ServiceAccount is bound") {
		t.Errorf("a missing reader of the metrics is an error, got %d %s", code, errOut)
	}
	for _, document := range []string{
		`{apiVersion: v1, kind: ServiceAccount, metadata: {name: prometheus, namespace: NS}}`,
		`{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRoleBinding, metadata: {name: NS}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole,
 name: masthead-metrics-reader}, subjects: [{kind: ServiceAccount, name: prometheus, namespace: NS}]}`,
	} {
		apply(t, f.hub, strings.ReplaceAll(document, "NS", ns))
	}
	out, errOut, code := run("--interval", "1s", "--sort-by", "requests")
	if code != 0 {
		t.Fatal(errOut)
	}
	wantLines(t, out, "", `\ACLUSTER +MEMORY +OBJECTS +REQUESTS/S`, `\A.*\ncapi/default/w1 +1Mi +12 +2970 `, `^kubeconfig/edge/shop +2Mi +0 +0 `)
	sent, _ := token.Load().(string)
	if got := strings.Count(sent, "."); got != 2 {
		t.Errorf("want the token of a ServiceAccount, got %d points in it", got)
	}
	if strings.Contains(out+errOut, strings.TrimPrefix(sent, "Bearer ")) {
		t.Error("the token is not printed")
	}
	if out, errOut, code = run("--interval", "0", "--service-account", ns+"/prometheus"); code != 0 || !strings.Contains(out, "REQUESTS/S") {
		t.Errorf("one look has rates since the manager began, got %d %s\n%s", code, errOut, out)
	}
	plain := httptest.NewServer(metrics.Config.Handler)
	t.Cleanup(plain.Close)
	if _, errOut, code = run("--interval", "0", "--metrics-url", plain.URL+"/metrics"); code != 0 || token.Load() != "" {
		t.Errorf("an address gets no token, got %d %s", code, errOut)
	}
}
