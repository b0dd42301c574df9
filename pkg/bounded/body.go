// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package bounded

import (
	"fmt"
	"io"
)

// An Account says whether there is room for what is under way. It is charged with the cost of an answer while that is read, and
// told when it is over.
type Account interface {
	// Hold changes to total what is held of the account. An error refuses it, and nothing is changed then.
	Hold(total int64) error
	// Close gives back everything.
	Close()
}

// A Body is the body of an answer, of which no more is read than its Scanner lets through.
type Body struct {
	body    io.ReadCloser
	scanner *Scanner
	account Account
	refused func(error)
	err     error
}

// NewBody returns a body that ends with an error where the scanner, or the account, refuses it. account may be nil. refused, if it
// is not nil, is called once with the error.
func NewBody(body io.ReadCloser, s *Scanner, account Account, refused func(error)) *Body {
	return &Body{body: body, scanner: s, account: account, refused: refused}
}

// Read implements io.Reader. A panic of the scanner, which there must not be, is an error of this answer: Read is called by
// goroutines that are not ours, where a panic would end the process.
func (b *Body) Read(p []byte) (n int, err error) {
	if b.err != nil {
		return 0, b.err
	}
	defer func() {
		if r := recover(); r != nil {
			b.err = fmt.Errorf("cannot read the API server's answer: panic: %T", r)
			n, err = 0, b.err
		}
	}()
	n, err = b.body.Read(p)
	if n == 0 {
		return n, err
	}
	n, refused := b.scanner.Scan(p[:n])
	if refused == nil && b.account != nil {
		refused = b.account.Hold(b.scanner.Cost())
	}
	if refused != nil {
		b.err = refused
		if b.refused != nil {
			b.refused(refused)
		}
		return n, refused // What came before it, of a stream, is good.
	}
	return n, err
}

// Close implements io.Closer.
func (b *Body) Close() error {
	if b.account != nil {
		b.account.Close()
	}
	return b.body.Close()
}

// A Text is a body that nobody decodes, of which only so many bytes are read. What is more is cut without an error: such
// answers are read by people.
func Text(body io.ReadCloser, bytes int64) io.ReadCloser {
	return struct {
		io.Reader
		io.Closer
	}{io.LimitReader(body, bytes), body}
}
