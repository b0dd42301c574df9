// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package hostile

import (
	"net"
	"net/http"
)

// An Attack is a way to harm the clients that connect to an API server.
type Attack struct {
	// Name is unique, and can be the name of a cluster.
	Name string
	// Harm is what the owner of the API server wants to happen.
	Harm string
	// Guard is what protects Masthead against it.
	Guard string
	// Connects is whether clients can connect to the server. If so, the server does its harm after that.
	Connects bool

	// answer answers a request, or returns false to leave it to the honest API server.
	answer func(s *Server, w http.ResponseWriter, r *request) bool
	// converse, if set, handles a connection in its own way. The connection is closed when it returns.
	converse func(s *Server, c net.Conn)
}

// Attacks returns all attacks, those that never connect first.
func Attacks() []Attack {
	var all []Attack
	for _, some := range [][]Attack{
		wireAttacks(), httpAttacks(), identityAttacks(), listAttacks(), objectAttacks(), watchAttacks(), documentAttacks(), errorAttacks(),
	} {
		all = append(all, some...)
	}
	return all
}

// Named returns the attack with a name.
func Named(name string) (Attack, bool) {
	for _, a := range Attacks() {
		if a.Name == name {
			return a, true
		}
	}
	return Attack{}, false
}
