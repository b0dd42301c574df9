// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/transport/spdy"
	"k8s.io/streaming/pkg/httpstream"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// portForwardProtocol is the API servers' name of the protocol of kubectl port-forward.
const portForwardProtocol = "portforward.k8s.io"

// DialPod connects to a port of a Pod of the hub through its API server, as kubectl port-forward does.
func (h *Hub) DialPod(ctx context.Context, pod client.ObjectKey, port int32) (net.Conn, error) {
	transport, upgrader, err := spdy.RoundTripperFor(h.cfg)
	if err != nil {
		return nil, fmt.Errorf("cannot use the credentials for the hub: %w", err)
	}
	url := h.core.RESTClient().Post().Resource("pods").Namespace(pod.Namespace).Name(pod.Name).SubResource("portforward").URL()
	dialer := spdy.NewDialerForStreaming(upgrader, &http.Client{Transport: transport, CheckRedirect: refuseRedirects}, http.MethodPost, url)
	connection, _, err := dialer.Dial(portForwardProtocol)
	if err != nil {
		return nil, fmt.Errorf("cannot reach the Pod %q through the API server: %w", pod, err)
	}
	c := &forwarded{connection: connection}
	context.AfterFunc(ctx, func() { _ = c.Close() })
	headers := http.Header{}
	headers.Set(corev1.PortHeader, strconv.Itoa(int(port)))
	headers.Set(corev1.PortForwardRequestIDHeader, "0")
	headers.Set(corev1.StreamType, corev1.StreamTypeError)
	failures, err := connection.CreateStream(headers)
	if err != nil {
		_ = c.Close()
		return nil, fmt.Errorf("cannot forward the port %d of the Pod %q: %w", port, pod, err)
	}
	_ = failures.Close() // Nothing is written to it. An error that it reports ends the other stream, too.
	headers.Set(corev1.StreamType, corev1.StreamTypeData)
	if c.Stream, err = connection.CreateStream(headers); err != nil {
		_ = c.Close()
		return nil, fmt.Errorf("cannot forward the port %d of the Pod %q: %w", port, pod, err)
	}
	return c, nil
}

// forwarded is a stream to a port of a Pod, with its own connection.
type forwarded struct {
	httpstream.Stream

	connection httpstream.Connection
}

// Close implements net.Conn.
func (f *forwarded) Close() error { return f.connection.Close() }

// LocalAddr implements net.Conn.
func (f *forwarded) LocalAddr() net.Addr { return &net.UnixAddr{Net: "portforward"} }

// RemoteAddr implements net.Conn.
func (f *forwarded) RemoteAddr() net.Addr { return &net.UnixAddr{Net: "portforward"} }

// SetDeadline implements net.Conn. The context of DialPod ends it instead.
func (f *forwarded) SetDeadline(time.Time) error { return nil }

// SetReadDeadline implements net.Conn.
func (f *forwarded) SetReadDeadline(time.Time) error { return nil }

// SetWriteDeadline implements net.Conn.
func (f *forwarded) SetWriteDeadline(time.Time) error { return nil }
