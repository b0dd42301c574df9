// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package transport

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"syscall"
	"time"

	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/connrotation"

	"github.com/masthead-dev/masthead/pkg/providers/credentials"
)

const (
	dialTimeout = 5 * time.Second
	// maxResponseHeaderBytes limits what a hostile API server can make the manager keep. client-go needs a few hundred.
	maxResponseHeaderBytes = 64 << 10

	// Limits of unread data, for one response and for all responses in flight. Go's defaults are 4 MiB and 1 GiB; 4 MiB is
	// the maximum.
	maxUnreadOfAnswer = 256 << 10
	maxUnread         = 4<<20 - 1
)

// New returns a Transport to the API server of credentials; o checks its address when it dials. unauthorized is called
// when a request is answered 401, or fails because the cluster is not claimed. It must not block.
func New(name string, creds *credentials.Credentials, o credentials.Options, agent string, unauthorized func()) (*Transport, error) {
	cfg := creds.RESTConfig()
	server, err := url.Parse(creds.Host())
	if err != nil {
		return nil, errors.New("cannot read the server's address")
	}
	tlsConfig, err := rest.TLSConfigFor(cfg)
	if err != nil {
		return nil, errors.New("cannot use the certificates")
	}
	if tlsConfig == nil {
		tlsConfig = &tls.Config{MinVersion: tls.VersionTLS12}
	}
	proxy := cfg.Proxy
	if proxy == nil {
		// Not nil, which SetTransportDefaults would replace by the environment's proxy.
		proxy = http.ProxyURL(nil)
	}
	t := &Transport{
		tracker: connrotation.NewConnectionTracker(), server: server, agent: agent, name: name, unauthorized: unauthorized,
		verbs: newVerbs(server.Path), owner: Owner{Limits: Limits{}.WithDefaults(), Refused: func(error) {}},
	}
	dialer := &net.Dialer{
		Timeout:   dialTimeout,
		KeepAlive: 30 * time.Second,
		ControlContext: func(_ context.Context, _, address string, _ syscall.RawConn) error {
			return checkDial(address, o)
		},
	}
	t.base = utilnet.SetTransportDefaults(&http.Transport{
		Proxy:                  proxy,
		TLSClientConfig:        tlsConfig,
		TLSHandshakeTimeout:    dialTimeout,
		MaxIdleConnsPerHost:    25,
		MaxResponseHeaderBytes: maxResponseHeaderBytes,
		DisableCompression:     true,
		HTTP2: &http.HTTP2Config{
			MaxReceiveBufferPerConnection: maxUnread,
			MaxReceiveBufferPerStream:     maxUnreadOfAnswer,
		},
		// Called in a goroutine of http.Transport.
		DialContext: func(ctx context.Context, network, address string) (c net.Conn, err error) {
			err = t.owner.Guard.Run("dialling", func() (err error) {
				c, err = t.dial(ctx, dialer, network, address)
				return err
			})
			return c, err
		},
	})
	t.sender = t.base
	t.SetToken(creds.Token())
	return t, nil
}

// dial makes a TCP connection that ends with the transport.
func (t *Transport) dial(ctx context.Context, dialer *net.Dialer, network, address string) (net.Conn, error) {
	c, err := dialer.DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	t.dials.Add(1)
	c = t.tracker.Track(c)
	if t.mode.Load() == int32(closed) { // Closed concurrently: CloseAll may have missed this one.
		_ = c.Close()
		return nil, t.notConnected()
	}
	return c, nil
}

// ErrRefusedAddress marks a refused address.
var ErrRefusedAddress = errors.New("address refused")

func checkDial(address string, o credentials.Options) error {
	ap, err := netip.ParseAddrPort(address)
	if err != nil {
		return fmt.Errorf("%w: not an IP address and port", ErrRefusedAddress)
	}
	if err := o.CheckAddress(ap.Addr()); err != nil {
		return fmt.Errorf("%w: %w", ErrRefusedAddress, err)
	}
	return nil
}
