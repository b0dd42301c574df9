// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package hostile

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"sync"
	"time"
)

// Options of a server. The zero value has defaults that are good for tests.
type Options struct {
	// MaxBytes is the maximum size of one answer. Default 256 MiB, more than the limit of any answer that is read.
	MaxBytes int64
	// MaxTime is the maximum duration of one answer, watches too. Default ten minutes.
	MaxTime time.Duration
	// Drip is the time between two bytes of an answer that drips, and between two events of a watch that never ends.
	// Default one second.
	Drip time.Duration
	// Honest answers the requests that the attack does not answer. Default NewHonest().
	Honest *Honest
}

// maxConnections is how many connections a server keeps at once. Further ones are closed as they arrive.
const maxConnections = 512

// Server is a malicious API server.
type Server struct {
	// Attack is what it does.
	Attack Attack
	// URL is its address.
	URL string

	options     Options
	certificate tls.Certificate
	authority   []byte
	listener    net.Listener
	http        *http.Server
	trap        *Server
	ctx         context.Context // It is the lifetime of this object.
	cancel      context.CancelFunc
	running     sync.WaitGroup

	mu sync.Mutex
	// open are the connections, and answering is how many requests are being answered; less is signalled when either
	// decreases.
	open      map[net.Conn]bool
	answering int
	less      *sync.Cond

	requests map[string]int
	state    map[string]int
}

// Start runs an API server that attacks its clients, until Close.
func Start(ctx context.Context, attack Attack, o Options) (*Server, error) {
	s, err := start(ctx, attack, o)
	if err != nil {
		return nil, err
	}
	// This is where the server redirects its clients. No client may follow.
	s.trap, err = start(ctx, Attack{Name: attack.Name + "-trap"}, Options{})
	if err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

// StartHonest runs an API server that is not malicious.
func StartHonest(ctx context.Context, honest *Honest) (*Server, error) {
	return start(ctx, Attack{Name: "honest", Connects: true}, Options{Honest: honest})
}

func start(ctx context.Context, attack Attack, o Options) (*Server, error) {
	if o.MaxBytes <= 0 {
		o.MaxBytes = 256 << 20
	}
	if o.MaxTime <= 0 {
		o.MaxTime = 10 * time.Minute
	}
	if o.Drip <= 0 {
		o.Drip = time.Second
	}
	if o.Honest == nil {
		o.Honest = NewHonest()
	}
	s := &Server{Attack: attack, options: o, open: map[net.Conn]bool{}, requests: map[string]int{}, state: map[string]int{}}
	s.less = sync.NewCond(&s.mu)
	var err error
	if s.certificate, s.authority, err = newCertificate(); err != nil {
		return nil, err
	}
	if s.listener, err = (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0"); err != nil {
		return nil, fmt.Errorf("cannot listen: %w", err)
	}
	s.URL = "https://" + s.listener.Addr().String()
	s.ctx, s.cancel = context.WithCancel(context.WithoutCancel(ctx))
	if attack.converse != nil {
		s.running.Go(s.accept)
		return s, nil
	}
	s.http = &http.Server{
		Handler:           s,
		TLSConfig:         &tls.Config{Certificates: []tls.Certificate{s.certificate}, MinVersion: tls.VersionTLS12},
		ErrorLog:          log.New(io.Discard, "", 0),
		ReadHeaderTimeout: time.Minute,
		BaseContext:       func(net.Listener) context.Context { return s.ctx },
		ConnState:         s.connState,
	}
	s.running.Go(func() { _ = s.http.ServeTLS(s.listener, "", "") })
	return s, nil
}

// Close ends every connection, and returns when nothing of the server runs any more.
func (s *Server) Close() {
	if s.trap != nil {
		s.trap.Close()
	}
	s.cancel()
	_ = s.listener.Close()
	if s.http != nil {
		_ = s.http.Close()
	}
	s.mu.Lock()
	for c := range s.open {
		_ = c.Close()
	}
	for len(s.open) > 0 || s.answering > 0 {
		s.less.Wait()
	}
	s.mu.Unlock()
	s.running.Wait()
}

// Kubeconfig returns a kubeconfig for the server, with a token that the server does not check.
func (s *Server) Kubeconfig() []byte {
	data, err := json.Marshal(map[string]any{
		"apiVersion": "v1", "kind": "Config", "current-context": "c",
		"clusters": []any{map[string]any{"name": "c", "cluster": map[string]any{"server": s.URL, "certificate-authority-data": s.authority}}},
		"users":    []any{map[string]any{"name": "u", "user": map[string]any{"token": "a-token-for-a-hostile-server"}}},
		"contexts": []any{map[string]any{"name": "c", "context": map[string]any{"cluster": "c", "user": "u"}}},
	})
	if err != nil {
		panic(err) // Made of literals.
	}
	return data
}

// Authority is the certificate that has signed that of the server, in PEM.
func (s *Server) Authority() []byte { return s.authority }

// Honest returns the API server that answers the requests that the attack does not answer.
func (s *Server) Honest() *Honest { return s.options.Honest }

// Requests returns the number of requests with a verb: "" for all, and "probe", "discovery" and "openapi" for those
// that are for no resource.
func (s *Server) Requests(verb string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if verb != "" {
		return s.requests[verb]
	}
	sum := 0
	for _, n := range s.requests {
		sum += n
	}
	return sum
}

// Trapped returns how many requests arrived at the address to which the server redirects its clients. There should be
// none.
func (s *Server) Trapped() int {
	if s.trap == nil {
		return 0
	}
	return s.trap.Requests("")
}

// Connections returns how many connections are open.
func (s *Server) Connections() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.open)
}

// ServeHTTP answers a request with the attack or honestly.
func (s *Server) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	s.answers(1)
	defer s.answers(-1)
	ctx, cancel := context.WithTimeout(req.Context(), s.options.MaxTime)
	defer cancel()
	// A client that does not read must not keep an answer open for ever.
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(s.options.MaxTime))
	r := parse(req.WithContext(ctx))
	s.note(r)
	if s.Attack.answer != nil && !s.marksCluster(r) && s.Attack.answer(s, w, r) {
		return
	}
	s.options.Honest.serve(w, r)
}

// marksCluster is whether a request marks the cluster as belonging to a hub, without which Masthead does not connect to
// it: it is the first definition that is written.
func (s *Server) marksCluster(r *request) bool {
	return s.Attack.Connects && r.verb == verbCreate && r.resource == "customresourcedefinitions" &&
		s.options.Honest.Objects(r.group, r.resource) == 0
}

func (s *Server) answers(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answering += n
	s.less.Broadcast()
}

func (s *Server) note(r *request) {
	what := r.verb
	switch {
	case what != "":
	case r.isDiscovery():
		what = "discovery"
	case r.isLookup:
		what = "openapi"
	default:
		what = "probe"
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests[what]++
}

// count counts something, from 1.
func (s *Server) count(what string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.state[what]++
	return s.state[what]
}

func (s *Server) connState(c net.Conn, state http.ConnState) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch state {
	case http.StateNew:
		s.open[c] = true
		if len(s.open) > maxConnections {
			_ = c.Close()
		}
	case http.StateClosed, http.StateHijacked:
		delete(s.open, c)
		s.less.Broadcast()
	case http.StateActive, http.StateIdle:
	}
}

// accept lets the attack converse with each client that connects.
func (s *Server) accept() {
	for {
		c, err := s.listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			continue
		}
		s.connState(c, http.StateNew)
		s.running.Go(func() {
			defer s.connState(c, http.StateClosed)
			defer func() { _ = c.Close() }()
			_ = c.SetDeadline(time.Now().Add(s.options.MaxTime))
			// The server may have been closed before this connection was in the set of connections that Close closes.
			if s.ctx.Err() == nil {
				s.Attack.converse(s, c)
			}
		})
	}
}

// newCertificate creates a certificate for 127.0.0.1 that is its own authority.
func newCertificate() (tls.Certificate, []byte, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, nil, fmt.Errorf("cannot create a key: %w", err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
		KeyUsage:    x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		return tls.Certificate{}, nil, fmt.Errorf("cannot create a certificate: %w", err)
	}
	authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, authority, nil
}
