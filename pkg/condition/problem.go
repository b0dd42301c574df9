// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package condition

// Problem is why something is not as it should be, in the words of a condition: a reason, which is one of the API's
// constants, and a message for users.
type Problem struct {
	Reason, Message string

	// Unknown is whether it is not known if it is as it should be. The agent uses it: does the hub hold what the claim
	// says?
	Unknown bool
}
