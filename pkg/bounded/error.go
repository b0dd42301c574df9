// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package bounded

import (
	"errors"
	"fmt"
)

// Errors that an *Error is, for errors.Is.
var (
	// ErrRefused is what every refusal is.
	ErrRefused = errors.New("the API server's answer is refused")

	// ErrTooLarge is what every refusal is that a higher limit, or asking for less, would avoid.
	ErrTooLarge = errors.New("the API server's answer is too large")
)

// A Limit is what an answer was refused for.
type Limit string

// Limits of an answer. The first six are those of Limits.
const (
	LimitBytes  Limit = "Bytes"
	LimitCost   Limit = "Cost"
	LimitValues Limit = "Values"
	LimitDepth  Limit = "Depth"
	LimitKey    Limit = "Key"
	LimitString Limit = "String"

	// LimitSyntax: the text is not JSON.
	LimitSyntax Limit = "Syntax"
	// LimitContentType: the answer is neither JSON nor, where nothing is decoded, plain text.
	LimitContentType Limit = "ContentType"
	// LimitEncoding: the answer is compressed, which nobody asked for.
	LimitEncoding Limit = "ContentEncoding"
	// LimitRedirect: the answer is a redirect or a switch of protocols.
	LimitRedirect Limit = "Redirect"
)

// An Error says that an answer was refused, and why. It holds nothing that the server sent, and is the same for the
// same limit, so that it can stand in a condition.
type Error struct {
	// Subject is what was refused: "list", "answer" or "event".
	Subject string
	// Limit is what it was refused for, and Max how much is allowed, if that is a number.
	Limit Limit
	Max   int64
}

// Error implements error.
func (e *Error) Error() string {
	prefix := "the API server's " + e.Subject + " is refused: "
	switch e.Limit {
	case LimitBytes:
		return prefix + fmt.Sprintf("it has more than %d bytes", e.Max)
	case LimitCost:
		return prefix + fmt.Sprintf("decoded, it would take more than %d bytes", e.Max)
	case LimitValues:
		return prefix + fmt.Sprintf("it has more than %d values", e.Max)
	case LimitDepth:
		return prefix + fmt.Sprintf("it is nested more than %d levels deep", e.Max)
	case LimitKey:
		return prefix + fmt.Sprintf("it has a key of more than %d bytes", e.Max)
	case LimitString:
		return prefix + fmt.Sprintf("it has a string or number of more than %d bytes", e.Max)
	case LimitSyntax:
		return prefix + "it is not JSON"
	case LimitContentType:
		return prefix + "its content type is not JSON"
	case LimitEncoding:
		return prefix + "it is compressed, which was not asked for"
	case LimitRedirect:
		return prefix + "it is a redirect"
	default:
		return prefix + string(e.Limit)
	}
}

// Is implements errors.Is for ErrRefused and ErrTooLarge.
func (e *Error) Is(target error) bool {
	switch e.Limit {
	case LimitBytes, LimitCost, LimitValues, LimitDepth, LimitKey, LimitString:
		return target == ErrRefused || target == ErrTooLarge
	default:
		return target == ErrRefused
	}
}
