// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package hostile

import (
	"bytes"
	"net"
	"time"
)

func wireAttacks() []Attack {
	return []Attack{
		{
			Name:     "silent",
			Harm:     "Accepts connections and never sends anything, so that each client waits",
			Guard:    "Time-out of the TLS handshake; suspects have a share of the workers",
			converse: silent,
		},
		{
			Name:     "slow-handshake",
			Harm:     "Sends one byte of its TLS handshake a second, so that the handshake never ends and never rests",
			Guard:    "Time-out of the whole TLS handshake",
			converse: slowHandshake,
		},
		{
			Name:     "not-tls",
			Harm:     "Sends zeros without end where a TLS handshake is expected",
			Guard:    "TLS is required, and its records are limited",
			converse: notTLS,
		},
		{
			Name:     "hang-up",
			Harm:     "Closes every connection as soon as it is there, so that it is dialled again and again",
			Guard:    "Back-off",
			converse: func(*Server, net.Conn) {},
		},
	}
}

// silent waits until the client closes the connection.
func silent(_ *Server, c net.Conn) {
	buffer := make([]byte, 4<<10)
	for {
		if _, err := c.Read(buffer); err != nil {
			return
		}
	}
}

// slowHandshake announces a record of 16 KiB and drips it.
func slowHandshake(s *Server, c net.Conn) {
	ticker := time.NewTicker(s.options.Drip)
	defer ticker.Stop()
	if _, err := c.Write([]byte{22, 3, 3, 0x40, 0}); err != nil {
		return
	}
	for range 0x4000 {
		select {
		case <-s.ctx.Done():
			return
		case <-ticker.C:
		}
		if _, err := c.Write([]byte{2}); err != nil {
			return
		}
	}
}

// notTLS sends zeros.
func notTLS(s *Server, c net.Conn) {
	block := bytes.Repeat([]byte{0}, chunk)
	for sent := int64(0); sent < s.options.MaxBytes; sent += chunk {
		if _, err := c.Write(block); err != nil {
			return
		}
	}
}
