// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package limits

import (
	"context"
	"io"
	"sync"
	"sync/atomic"
)

// A Charge decides whether there is room for a response in progress. It is charged with the cost of a response while
// that is read, and closed afterwards.
type Charge interface {
	// Hold sets what the account holds to total. An error means that it is refused and nothing has changed.
	Hold(total int64) error
	// Close releases everything.
	Close()
}

// A Body is a response body that passes on only what its Scanner allows.
type Body struct {
	body io.ReadCloser
	// scanner is nil for a text.
	scanner *Scanner
	account Charge
	scope   *scope
	refused func(error)
	pace    func(stop <-chan struct{}, texts, bytes int64)
	err     error
	aborted atomic.Pointer[error]
	stop    chan struct{}
	stopped sync.Once
}

// NewBody returns a body that ends with an error where the scanner or the account refuses it. open, which may be nil,
// opens the account; abort ends the body with an error although nothing was refused. The account is closed with the
// body or, if ctx is from WithDecoding, when decoding is done. refused, which may be nil, is called with the error that
// ends the body.
func NewBody(
	ctx context.Context, body io.ReadCloser, s *Scanner, open func(abort func(error)) Charge, refused func(error),
) *Body {
	b := &Body{body: body, scanner: s, refused: refused, scope: scopeFrom(ctx), stop: make(chan struct{})}
	if open != nil {
		b.account = open(b.abort)
	}
	return b
}

// Pace makes each read call pace before returning, with the number of stream texts that ended in it and its number of
// bytes. pace may block: nothing is lost, and the sender has to wait, too. pace must return once stop is closed. Call
// Pace before the first read.
func (b *Body) Pace(pace func(stop <-chan struct{}, texts, bytes int64)) { b.pace = pace }

// abort ends the body for its readers, including blocked ones.
func (b *Body) abort(err error) {
	b.aborted.Store(&err)
	b.stopped.Do(func() { close(b.stop) })
	_ = b.body.Close()
}

// Read implements io.Reader.
func (b *Body) Read(p []byte) (n int, err error) {
	if b.err != nil {
		return 0, b.err
	}
	n, err = b.body.Read(p)
	if why := b.aborted.Load(); why != nil {
		return 0, b.refuse(*why)
	}
	if n == 0 {
		return n, err
	}
	var refused error
	texts := int64(0)
	if b.scanner != nil {
		before := b.scanner.texts
		n, refused = b.scanner.Scan(p[:n])
		texts = b.scanner.texts - before
	}
	if b.pace != nil {
		b.pace(b.stop, texts, int64(n))
	}
	if refused == nil && b.account != nil {
		refused = b.account.Hold(b.scanner.Cost())
	}
	if refused != nil {
		return n, b.refuse(refused) // In a stream, everything before it is valid.
	}
	return n, err
}

func (b *Body) refuse(err error) error {
	b.err = err
	if b.refused != nil {
		b.refused(err)
	}
	return err
}

// Close implements io.Closer.
func (b *Body) Close() error {
	b.stopped.Do(func() { close(b.stop) })
	err := b.body.Close()
	if b.account != nil && !b.scope.keep(b.account) {
		b.account.Close()
	}
	return err
}

type scopeKey struct{}

// scope keeps accounts open until their responses are decoded.
type scope struct {
	mu       sync.Mutex
	accounts []Charge
	over     bool
}

// WithDecoding returns a context for requests whose responses are decoded before done is called: until then they stay
// charged. client-go closes a response after reading it, and decodes it afterwards.
func WithDecoding(ctx context.Context) (_ context.Context, done func()) {
	s := &scope{}
	return context.WithValue(ctx, scopeKey{}, s), s.end
}

func scopeFrom(ctx context.Context) *scope {
	s, _ := ctx.Value(scopeKey{}).(*scope)
	return s
}

// keep reports whether the account will be closed later.
func (s *scope) keep(a Charge) bool {
	if s == nil {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.over {
		s.accounts = append(s.accounts, a)
	}
	return !s.over
}

func (s *scope) end() {
	s.mu.Lock()
	accounts := s.accounts
	s.accounts, s.over = nil, true
	s.mu.Unlock()
	for _, a := range accounts {
		a.Close()
	}
}

// Text returns a body that is not decoded, limited to the given bytes. The rest is cut off without an error: such
// responses are for humans.
func Text(body io.ReadCloser, bytes int64) *Body {
	limited := struct {
		io.Reader
		io.Closer
	}{io.LimitReader(body, bytes), body}
	return &Body{body: limited, stop: make(chan struct{})}
}
