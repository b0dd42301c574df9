// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

// Package workload queries imported clusters: for the credentials' rights, for their Nodes, and for a token of a
// ServiceAccount. It can query nothing else.
//
// Answers are bounded in size, number and time, and what is kept of them is charged to the budget of the process, on
// the account of the import's namespace. Of Nodes, labels, the version of the kubelet and readiness are kept. Redirects
// are not followed, and addresses are checked against what kubeconfigs may name.
//
// # Where to change what
//
//   - queries, and the bounds of answers: client.go; for tokens: token.go;
//   - what is kept of the answers, and for how long they are valid: clusters.go;
//   - which account is charged: memory.go.
//
// # What does the owner of one imported cluster gain from the hub or another cluster through this?
//
// The API server is sent the credentials of its own kubeconfig, and no others. With large or slow answers its owner
// causes the Nodes to be dropped, and takes memory and time from the share of the namespace that imports the cluster.
// No error repeats an answer.
package workload
