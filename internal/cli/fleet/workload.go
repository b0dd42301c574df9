// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"errors"
	"fmt"
	"mime"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"

	"github.com/masthead-dev/masthead/pkg/apierror"
	"github.com/masthead-dev/masthead/pkg/limits"
	"github.com/masthead-dev/masthead/pkg/providers/clusterprofile"
	"github.com/masthead-dev/masthead/pkg/providers/credentials"
)

const (
	// answerDeadline is the timeout for one answer of a workload cluster.
	answerDeadline = 10 * time.Second

	// maxAnswer is the maximum size of one answer.
	maxAnswer = 32 << 20
)

// Workload returns the side of a cluster. It creates it once, and does not connect yet. It refuses a cluster of a
// ClusterProfile that the user did not name: see Find.
func (h *Hub) Workload(ctx context.Context, c *Cluster) (*ClusterClient, error) {
	if c.key.Source == clusterprofile.SourceName && !c.named {
		return nil, fmt.Errorf("a ClusterProfile decides where its credentials are sent: it is reached with --cluster %s only", c.Name)
	}
	h.mu.Lock()
	r := h.workloads[c.Name]
	if r == nil {
		r = &reached{}
		h.workloads[c.Name] = r
	}
	h.mu.Unlock()
	r.once.Do(func() { r.side, r.err = h.workload(ctx, c) })
	return r.side, r.err
}

func (h *Hub) workload(ctx context.Context, c *Cluster) (*ClusterClient, error) {
	if c.key.Source == clusterprofile.SourceName {
		return h.ofProfile(ctx, c)
	}
	nn, err := kubeconfigSecret(c.key)
	if err != nil {
		return nil, err
	}
	secret := &corev1.Secret{}
	switch err := h.client.Get(ctx, nn, secret); {
	case apierrors.IsForbidden(err):
		return nil, fmt.Errorf("you may not read the Secret %q of the hub, which has the kubeconfig of the cluster", nn)
	case apierrors.IsNotFound(err):
		return nil, fmt.Errorf("the Secret %q of the hub, which has the kubeconfig of the cluster, does not exist", nn)
	case err != nil:
		return nil, fmt.Errorf("cannot read the Secret %q of the hub: %w", nn, err)
	}
	data := secret.Data["value"]
	if data == nil {
		data = secret.Data["kubeconfig"]
	}
	cfg, err := newConfig(data, h.allow)
	if err != nil {
		return nil, fmt.Errorf("the kubeconfig in the Secret %q of the hub is not used: %w", nn, err)
	}
	return NewSide(c.Name, cfg)
}

// ofProfile returns the side of a cluster that another cluster manager's ClusterProfile describes.
func (h *Hub) ofProfile(ctx context.Context, c *Cluster) (*ClusterClient, error) {
	source, err := clusterprofile.New(clusterprofile.Options{Cached: h.client, Live: h.client})
	if err != nil {
		return nil, err
	}
	enrolled, err := source.Describe(ctx, c.key.Object())
	if err != nil {
		return nil, fmt.Errorf("cannot read the enrolled ClusterProfile %q of the hub: %w", c.key.Object(), err)
	}
	kubeconfig, err := source.Kubeconfig(ctx, enrolled)
	if err != nil {
		return nil, fmt.Errorf("cannot get the credentials that the ClusterProfile %q names: %w", c.key.Object(), err)
	}
	cfg, err := newConfig(kubeconfig.Data, h.allow)
	if err != nil {
		return nil, fmt.Errorf("the credentials that the ClusterProfile %q names are not used: %w", c.key.Object(), err)
	}
	return NewSide(c.Name, cfg)
}

// newConfig makes a configuration from an untrusted kubeconfig.
func newConfig(kubeconfig []byte, allow credentials.Options) (*rest.Config, error) {
	creds, err := credentials.Parse(kubeconfig, allow)
	if err != nil {
		return nil, err
	}
	cfg := creds.RESTConfig()
	server, err := url.Parse(creds.Host())
	if err != nil {
		return nil, errors.New("cannot read the server's address")
	}
	cfg.BearerToken = creds.Token()
	cfg.Timeout = answerDeadline
	cfg.DisableCompression = true
	cfg.ContentType, cfg.AcceptContentTypes = "application/json", "application/json"
	if cfg.Proxy == nil {
		// Not nil, for which the environment's proxy would be used: it resolves names itself.
		cfg.Proxy = http.ProxyURL(nil)
	}
	dialer := &net.Dialer{
		Timeout: answerDeadline / 2,
		ControlContext: func(_ context.Context, _, address string, _ syscall.RawConn) error {
			ap, err := netip.ParseAddrPort(address)
			if err != nil {
				return errors.New("not an IP address and port")
			}
			return allow.CheckAddress(ap.Addr())
		},
	}
	cfg.Dial = dialer.DialContext
	cfg.Wrap(func(base http.RoundTripper) http.RoundTripper { return &guarded{base: base, server: server} })
	return cfg, nil
}

// guarded blocks requests to other hosts, and bounds answers before they are decoded.
type guarded struct {
	base   http.RoundTripper
	server *url.URL
}

// RoundTrip implements http.RoundTripper.
func (g *guarded) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.URL.Scheme != g.server.Scheme || req.URL.Host != g.server.Host {
		return nil, errors.New("a request to another host than the API server was refused")
	}
	resp, err := g.base.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	if mediaType, _, err := mime.ParseMediaType(resp.Header.Get("Content-Type")); err == nil && mediaType == "application/json" {
		resp.Body = limits.NewBody(req.Context(), resp.Body, limits.NewScanner("answer", limits.WithBytes(maxAnswer)), nil, nil)
	} else {
		resp.Body = limits.Text(resp.Body, maxText)
	}
	return resp, nil
}

// WrappedRoundTripper lets client-go cancel requests; otherwise it warns on standard error.
func (g *guarded) WrappedRoundTripper() http.RoundTripper { return g.base }

// maxText is the maximum size that is read of an answer that is not JSON.
const maxText = 64 << 10

// refuseRedirects is for http.Client: an API server has no reason to redirect.
func refuseRedirects(*http.Request, []*http.Request) error {
	return errors.New("a redirect was refused")
}

// Explain describes why a side could not be reached. Errors of the transport repeat addresses, which the user may see,
// and nothing of the credentials.
func Explain(err error) string {
	switch {
	case apierrors.IsForbidden(err):
		return "you lack the right: " + err.Error()
	case apierror.IsAnswer(err), err == nil:
		return fmt.Sprint(err)
	case errors.Is(err, context.DeadlineExceeded):
		return "it did not respond in time"
	default:
		return err.Error()
	}
}
