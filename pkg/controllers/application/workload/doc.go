// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

// Package workload is what is known of one engaged workload cluster between two looks at its Applications: which there
// are, which kinds are watched because of them, what the cluster refused, and whom an event concerns.
//
//   - cluster.go has the Applications, and what is watched for each; kinds.go asks what the cluster calls a kind, and
//     unanswered.go has what it did not answer;
//   - regime.go has what may be done in the cluster; wake.go has Applications looked at, not too often;
//   - events.go finds the Applications that an event concerns; live.go asks the watches and the API server;
//   - refusals.go has the writes that the cluster refused; settling.go how long a status waits.
//
// A Cluster lives as long as the connection. It knows no other cluster and nothing of the hub. Its memory grows with
// the Applications and the kinds that they name, of which it watches 500 at most, whoever creates them.
package workload
