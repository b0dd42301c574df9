// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

// Package workload holds the state of one engaged workload cluster between reconciles of its Applications: the
// Applications, the kinds watched for them, refused writes, and the mapping of events to Applications.
//
//   - cluster.go has the Applications, and the kinds watched for each; kinds.go resolves kinds, and unanswered.go has
//     those that the API server did not answer for;
//   - policy.go has what is allowed in the cluster; wake.go queues Applications, rate-limited;
//   - events.go finds the Applications affected by an event; live.go queries the watches and the API server;
//   - refusals.go has the writes that the cluster refused; settling.go how long a status waits.
//
// A Cluster lives as long as the connection. It has no access to other clusters or the hub. Its memory grows with the
// Applications and their kinds. It watches at most 500 kinds, regardless of who creates them.
package workload
