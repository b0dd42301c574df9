// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package condition

// Problem is why a claim cannot be synchronised now, in the words of a condition.
type Problem struct {
	Reason, Message string

	// Unknown is whether it is not known if the hub holds what the claim says.
	Unknown bool
}
