// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/condition"
	"github.com/masthead-dev/masthead/pkg/limits"
	"github.com/masthead-dev/masthead/pkg/providers/connection/transport"
)

// maxProbeBody is how much of a probe's response is read.
const maxProbeBody = 64 << 10

// Values reported by an API server go into conditions and labels: unexpected ones are ignored. See also ValidUID.
var validVersion = regexp.MustCompile(`^v[0-9][0-9A-Za-z.+-]{0,62}$`)

// A Prober queries an API server about itself, outside the rate limit of its clients: busy does not mean unhealthy.
// Each request has a deadline.
type Prober struct {
	transport *transport.Transport
	timeout   time.Duration
}

// New returns a Prober of a Transport's cluster. The time-out applies to each request.
func New(t *transport.Transport, timeout time.Duration) Prober {
	return Prober{transport: t, timeout: timeout}
}

// Transport returns the transport of the requests.
func (p Prober) Transport() *transport.Transport { return p.transport }

// Ready sends GET /readyz. Any response means reachable; unreachable is a failure, and so is 401, with
// ReasonUnauthorized. It uses /readyz, not / as Cluster API does, because every authenticated user may read it
// without extra RBAC, and because it reports control plane health.
func (p Prober) Ready(ctx context.Context, token string) (metav1.ConditionStatus, *condition.Error) {
	code, _, err := p.get(ctx, "/readyz", token)
	switch {
	case errors.Is(err, limits.ErrRefused): // It responds, but not like a healthy API server.
		return metav1.ConditionFalse, nil
	case err != nil:
		return metav1.ConditionUnknown, p.explain(err)
	case code == http.StatusUnauthorized:
		return metav1.ConditionUnknown, condition.NewError(fleetv1alpha1.ReasonUnauthorized, "The API server does not accept the credentials")
	case code == http.StatusOK:
		return metav1.ConditionTrue, nil
	case code == http.StatusForbidden || code == http.StatusNotFound:
		// Unknown, not unhealthy.
		return metav1.ConditionUnknown, nil
	default:
		return metav1.ConditionFalse, nil
	}
}

// Version returns the version of Kubernetes. Nothing depends on it, so any failure is an empty version.
func (p Prober) Version(ctx context.Context, token string) string {
	code, body, err := p.get(ctx, "/version", token)
	if err != nil || code != http.StatusOK {
		return ""
	}
	var v struct {
		GitVersion string `json:"gitVersion"`
	}
	if json.Unmarshal(body, &v) != nil || !validVersion.MatchString(v.GitVersion) {
		return ""
	}
	return v.GitVersion
}

// Identity returns the UID of the namespace kube-system, the closest thing to a cluster identity in Kubernetes.
func (p Prober) Identity(ctx context.Context, token string) (string, *condition.Error) {
	code, body, err := p.get(ctx, "/api/v1/namespaces/"+metav1.NamespaceSystem, token)
	switch {
	case err != nil:
		return "", p.explain(err)
	case code == http.StatusUnauthorized:
		return "", condition.NewError(fleetv1alpha1.ReasonUnauthorized, "The API server does not accept the credentials")
	case code == http.StatusForbidden:
		return "", condition.NewError(fleetv1alpha1.ReasonForbidden, "The credentials may not get the namespace kube-system, whose UID identifies the cluster")
	case code != http.StatusOK:
		return "", condition.NewError(fleetv1alpha1.ReasonProbeFailed, fmt.Sprintf("The API server answered the request for the namespace kube-system with %d", code))
	}
	ns := metav1.PartialObjectMetadata{}
	if json.Unmarshal(body, &ns) != nil || !ValidUID(string(ns.UID)) {
		return "", condition.NewError(fleetv1alpha1.ReasonProbeFailed, "The API server's answer to a request for the namespace kube-system is not a namespace with a UUID")
	}
	return string(ns.UID), nil
}

func (p Prober) get(ctx context.Context, path, token string) (int, []byte, error) {
	return p.send(ctx, question{method: http.MethodGet, path: path, accept: "application/json"}, token)
}

// question is a probe request.
type question struct {
	method, path, accept string
	// body is sent as JSON, if set.
	body []byte
}

// send sends a request, and returns the status and body of the response.
func (p Prober) send(ctx context.Context, q question, token string) (int, []byte, error) {
	ctx, cancel := context.WithTimeout(ctx, p.timeout)
	defer cancel()
	u := *p.transport.Server()
	u.Path += q.path
	req, err := http.NewRequestWithContext(ctx, q.method, u.String(), bytes.NewReader(q.body))
	if err != nil {
		return 0, nil, err
	}
	req.Header.Set("Accept", q.accept)
	if q.body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	resp, err := p.transport.Ask(req, token)
	if err != nil {
		return 0, nil, err
	}
	defer resp.Body.Close() //nolint:errcheck // Nothing is lost with it.
	answer, err := io.ReadAll(io.LimitReader(resp.Body, maxProbeBody))
	if err != nil {
		return 0, nil, err
	}
	return resp.StatusCode, answer, nil
}
