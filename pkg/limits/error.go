// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package limits

import (
	"errors"
	"fmt"
)

// Errors that match an *Error with errors.Is.
var (
	// ErrRefused matches every refusal.
	ErrRefused = errors.New("the API server's answer is refused")

	// ErrTooLarge matches refusals that a higher limit, or a smaller request, would avoid.
	ErrTooLarge = errors.New("the API server's answer is too large")
)

// A Limit is the reason why a response was refused.
type Limit string

// Limits of a response. The first six are those of Limits.
const (
	LimitBytes  Limit = "Bytes"
	LimitCost   Limit = "Cost"
	LimitValues Limit = "Values"
	LimitDepth  Limit = "Depth"
	LimitKey    Limit = "Key"
	LimitString Limit = "String"

	// LimitSyntax: the text is not JSON.
	LimitSyntax Limit = "Syntax"
	// LimitContentType: the response is neither JSON nor, where nothing is decoded, plain text.
	LimitContentType Limit = "ContentType"
	// LimitEncoding: the response is compressed, which was not requested.
	LimitEncoding Limit = "ContentEncoding"
	// LimitRedirect: the response is a redirect or a switch of protocols.
	LimitRedirect Limit = "Redirect"
)

// An Error means that a response was refused, and why. It contains nothing that the server sent, and is the same for
// the same limit, so that it can be used in a condition.
type Error struct {
	// Subject is what was refused: "list", "answer" or "event".
	Subject string
	// Limit is the reason for the refusal, and Max the allowed maximum, if that is a number.
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
		return prefix + "it is compressed, which was not requested"
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
