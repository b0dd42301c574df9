// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"fmt"

	"github.com/masthead-dev/masthead/pkg/condition"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/reason"
)

// conflict is the condition of a claim whose place in the hub is taken. It names the holder by what the hub's administrator
// chose to let clusters know of each other, the identifier and the namespace, and nothing else of the holder's object.
func conflict(kind, target, name, holder string) *condition.Problem {
	return &condition.Problem{
		Reason: reason.ReasonConflict,
		Message: fmt.Sprintf("The name %q of kind %s in the namespace %q of the hub is taken by %s. Nothing was written; "+
			"this claim is synchronised as soon as the name is free.", name, kind, target, holder),
	}
}

// deleting is the condition of a claim that waits for the hub.
func deleting(kind, target, name string) *condition.Problem {
	return &condition.Problem{
		Reason:  reason.ReasonDeleting,
		Message: fmt.Sprintf("Waiting until the %s %q in the namespace %q of the hub is deleted.", kind, name, target),
	}
}
