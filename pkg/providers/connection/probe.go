// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package connection

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"regexp"
	"syscall"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/masthead-dev/masthead/pkg/bounded"
	"github.com/masthead-dev/masthead/pkg/multicluster"
	"github.com/masthead-dev/masthead/pkg/providers/connection/transport"
)

// maxProbeBody is how much of an answer to a probe is read.
const maxProbeBody = 64 << 10

// What an API server says about itself goes into conditions and labels: anything odd is not taken. See also validUID.
var validVersion = regexp.MustCompile(`^v[0-9][0-9A-Za-z.+-]{0,62}$`)

// failure says why something did not work, in words for a condition: no timestamps, no port numbers of this side.
type failure struct {
	reason, message string
}

func (f *failure) Error() string { return f.message }

// prober asks an API server questions about itself, outside the rate limit of its clients: a busy cluster is not an ill
// one. Each question has a deadline.
type prober struct {
	transport *transport.Transport
	timeout   time.Duration
}

// ready asks GET /readyz. Whatever answers is reachable; what is not reachable is a failure, and so is 401, with
// ReasonUnauthorized. /readyz is used, and not / as by Cluster API, because the API server lets every authenticated
// user read it, without any role of ours, and because it says how the control plane is.
func (p prober) ready(ctx context.Context, token string) (metav1.ConditionStatus, *failure) {
	code, _, err := p.get(ctx, "/readyz", token)
	switch {
	case errors.Is(err, bounded.ErrRefused): // It answers, if not as an API server that is well does.
		return metav1.ConditionFalse, nil
	case err != nil:
		return metav1.ConditionUnknown, p.explain(err)
	case code == http.StatusUnauthorized:
		return metav1.ConditionUnknown, &failure{ReasonUnauthorized, "The API server does not accept the credentials"}
	case code == http.StatusOK:
		return metav1.ConditionTrue, nil
	case code == http.StatusForbidden || code == http.StatusNotFound:
		// It would not say: that it is ill is not known either.
		return metav1.ConditionUnknown, nil
	default:
		return metav1.ConditionFalse, nil
	}
}

// version asks for the version of Kubernetes. Nothing depends on it, so that any failure is an empty version.
func (p prober) version(ctx context.Context, token string) string {
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

// identity asks for the UID of the namespace kube-system, which is the nearest that Kubernetes has to an identity of a
// cluster.
func (p prober) identity(ctx context.Context, token string) (string, *failure) {
	code, body, err := p.get(ctx, "/api/v1/namespaces/"+metav1.NamespaceSystem, token)
	switch {
	case err != nil:
		return "", p.explain(err)
	case code == http.StatusUnauthorized:
		return "", &failure{ReasonUnauthorized, "The API server does not accept the credentials"}
	case code == http.StatusForbidden:
		return "", &failure{ReasonForbidden, "The credentials may not get the namespace kube-system, whose UID identifies the cluster"}
	case code != http.StatusOK:
		return "", &failure{ReasonProbeFailed, fmt.Sprintf("The API server answered %d when asked for the namespace kube-system", code)}
	}
	ns := metav1.PartialObjectMetadata{}
	if json.Unmarshal(body, &ns) != nil || !validUID(string(ns.UID)) {
		return "", &failure{ReasonProbeFailed, "The API server's answer to a request for the namespace kube-system is not a namespace with a UUID"}
	}
	return string(ns.UID), nil
}

func (p prober) get(ctx context.Context, path, token string) (int, []byte, error) {
	ctx, cancel := context.WithTimeout(ctx, p.timeout)
	defer cancel()
	u := *p.transport.Server()
	u.Path += path
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return 0, nil, err
	}
	req.Header.Set("Accept", "application/json")
	resp, err := p.transport.Ask(req, token)
	if err != nil {
		return 0, nil, err
	}
	defer resp.Body.Close() //nolint:errcheck // Nothing is lost with it.
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxProbeBody))
	if err != nil {
		return 0, nil, err
	}
	return resp.StatusCode, body, nil
}

// explain turns an error of the network into a reason and a message that stays the same from one attempt to the next.
func (p prober) explain(err error) *failure {
	host := p.transport.Server().Host
	if why := refusal(err); why != nil {
		return why
	}
	if errors.Is(err, transport.ErrRefusedAddress) { // One sentence for all of them: which address it is and why tells of the manager's network.
		return &failure{ReasonEndpointDenied, fmt.Sprintf("The API server at %s has an address to which this manager makes no connections", host)}
	}
	if message := tlsMessage(err); message != "" {
		return &failure{ReasonTLSError, fmt.Sprintf("The API server at %s %s", host, message)}
	}
	return &failure{ReasonDialError, fmt.Sprintf("The API server at %s %s", host, dialMessage(err))}
}

func tlsMessage(err error) string {
	var (
		unknown  x509.UnknownAuthorityError
		hostname x509.HostnameError
		invalid  x509.CertificateInvalidError
		record   tls.RecordHeaderError
		remote   *net.OpError
		verify   *tls.CertificateVerificationError
	)
	switch {
	case errors.As(err, &unknown):
		return "has a certificate that is signed by an unknown authority"
	case errors.As(err, &hostname):
		return "has a certificate for another name"
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		return "has a certificate that has expired or is not valid yet"
	case errors.As(err, &invalid), errors.As(err, &verify):
		return "has a certificate that is not valid"
	case errors.As(err, &record), errors.Is(err, http.ErrSchemeMismatch):
		return "does not speak TLS"
	case errors.As(err, &remote) && remote.Op == "remote error":
		return "ended the TLS handshake: " + remote.Err.Error()
	default:
		return ""
	}
}

func dialMessage(err error) string {
	var (
		dns     *net.DNSError
		timeout net.Error
	)
	switch {
	case errors.Is(err, multicluster.ErrClusterNotConnected):
		return "is being disconnected"
	case errors.As(err, &dns) && dns.IsNotFound:
		return "has a name that does not exist"
	case errors.As(err, &dns):
		return "has a name that cannot be resolved"
	case errors.Is(err, syscall.ECONNREFUSED):
		return "refused the connection"
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return "closed the connection"
	case errors.Is(err, syscall.EHOSTUNREACH), errors.Is(err, syscall.ENETUNREACH):
		return "cannot be reached: there is no route to it"
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &timeout) && timeout.Timeout():
		return "did not answer in time"
	default:
		return "cannot be reached"
	}
}
