// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package bounded

import (
	"context"
	"io"
	"sync"
	"sync/atomic"
)

// An Account says whether there is room for what is under way. It is charged with the cost of an answer while that is
// read, and told when it is over.
type Account interface {
	// Hold changes to total what is held of the account. An error refuses it, and nothing is changed then.
	Hold(total int64) error
	// Close gives back everything.
	Close()
}

// A Body is the body of an answer, of which no more is read than its Scanner lets through.
type Body struct {
	body io.ReadCloser
	// scanner is nil for a text.
	scanner *Scanner
	account Account
	scope   *scope
	refused func(error)
	pace    func(stop <-chan struct{}, texts, bytes int64)
	err     error
	aborted atomic.Pointer[error]
	stop    chan struct{}
	stopped sync.Once
}

// NewBody returns a body that ends with an error where the scanner, or the account, refuses it. open, which may be nil,
// opens the account; abort has the body end with an error although nothing was refused. The account is closed with the
// body or, if ctx is of WithDecoding, when that is over. refused, which may be nil, is called with the error that ends
// the body.
func NewBody(
	ctx context.Context, body io.ReadCloser, s *Scanner, open func(abort func(error)) Account, refused func(error),
) *Body {
	b := &Body{body: body, scanner: s, refused: refused, scope: scopeOf(ctx), stop: make(chan struct{})}
	if open != nil {
		b.account = open(b.abort)
	}
	return b
}

// Pace has each read wait in pace, which is told how many texts of a stream ended in what was read, and how many bytes
// that is, before it is passed on: nothing is lost, and whoever sends has to wait, too. pace must return once stop is
// closed. It is called before the first read.
func (b *Body) Pace(pace func(stop <-chan struct{}, texts, bytes int64)) { b.pace = pace }

// abort ends the body for whoever reads it, and whoever waits for more of it.
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
		return n, b.refuse(refused) // What came before it, of a stream, is good.
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

// scope keeps accounts until what they are charged with is decoded.
type scope struct {
	mu       sync.Mutex
	accounts []Account
	over     bool
}

// WithDecoding returns a context for requests whose answers are decoded before done is called: until then they stay
// charged. client-go closes an answer when it has been read, and decodes it then.
func WithDecoding(ctx context.Context) (_ context.Context, done func()) {
	s := &scope{}
	return context.WithValue(ctx, scopeKey{}, s), s.end
}

func scopeOf(ctx context.Context) *scope {
	s, _ := ctx.Value(scopeKey{}).(*scope)
	return s
}

// keep is whether the account will be closed later.
func (s *scope) keep(a Account) bool {
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

// Text is a body that nobody decodes, of which only so many bytes are read. What is more is cut without an error: such
// answers are read by people.
func Text(body io.ReadCloser, bytes int64) *Body {
	limited := struct {
		io.Reader
		io.Closer
	}{io.LimitReader(body, bytes), body}
	return &Body{body: limited, stop: make(chan struct{})}
}
