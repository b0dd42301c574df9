// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

// Package install creates, updates and removes Masthead's objects in workload clusters. It is shared by the installers
// of definitions (agent, discovery, application).
//
// # Guarantees
//
//   - No requests are sent while nothing differs: a Record in the object (record.go) or a State in memory (latest.go)
//     shows that the object is unchanged.
//   - A write replaces exactly the state that was read (wanted.go, writer.go), sets the labels of the hub, and uses its
//     field manager. It is no server-side apply: that would keep fields that others added.
//   - Marks determine the owner of an object (marks.go). An installer neither writes nor removes objects that this hub
//     does not own.
//   - Versions in which objects may be stored are kept in a definition (definition.go).
//   - Deletes have preconditions (Unchanged). This package does not check whether a definition has objects: the agent
//     closes a definition first, discovery removes its copies first, and that of Applications is never removed.
//   - A refusal by the admission policy that protects these objects is no problem while a changed username of Masthead
//     can explain it (policyuser.go): the username is requested from the cluster again, the policy is rewritten, and
//     the write is retried. If the cluster confirms the username, or nothing requests it, the refusal is reported.
//   - Responses of API servers are classified in one place (answer.go), and reported to users once (reports.go), with
//     the same messages (subject.go).
package install
