// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"syscall"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/condition"
	"github.com/masthead-dev/masthead/pkg/limits"
	"github.com/masthead-dev/masthead/pkg/multicluster"
	"github.com/masthead-dev/masthead/pkg/providers/connection/transport"
)

// Refusal returns a condition's reason and message for a refused response; nil for other errors.
func Refusal(err error) *condition.Error {
	if refused, ok := errors.AsType[*limits.Error](err); ok {
		return condition.NewError(fleetv1alpha1.ReasonAnswerRefused, "An answer was refused: "+refused.Error())
	}
	if share, ok := errors.AsType[*limits.ShareError](err); ok {
		return condition.NewError(fleetv1alpha1.ReasonMemoryShareExceeded, "Some kinds are not watched: "+share.Error())
	}
	if errors.Is(err, transport.ErrEventsDelayed) {
		return condition.NewError(fleetv1alpha1.ReasonEventsDelayed, "Events or answers are read with a delay: the cluster sends more of them than are read in the long run")
	}
	return nil
}

// explain turns a network error into a reason and a message that is stable across attempts.
func (p Prober) explain(err error) *condition.Error {
	host := p.transport.Server().Host
	if why := Refusal(err); why != nil {
		return why
	}
	if errors.Is(err, transport.ErrRefusedAddress) { // One message for all: the address and the cause would reveal the manager's network.
		return condition.NewError(fleetv1alpha1.ReasonEndpointDenied, fmt.Sprintf("The API server at %s has an address to which this manager does not connect", host))
	}
	if message := tlsMessage(err); message != "" {
		return condition.NewError(fleetv1alpha1.ReasonTLSError, fmt.Sprintf("The API server at %s %s", host, message))
	}
	return condition.NewError(fleetv1alpha1.ReasonDialError, fmt.Sprintf("The API server at %s %s", host, dialMessage(err)))
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
		return "did not respond in time"
	default:
		return "cannot be reached"
	}
}
