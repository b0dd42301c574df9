// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package condition

// Problem is why something is not as it should be, in a condition's terms: a reason, which is one of the API's
// constants, and a message for users.
type Problem struct {
	Reason, Message string

	// Unknown says that it is not known whether something is as it should be. The agent uses it for whether the hub
	// matches the claim.
	Unknown bool
}
