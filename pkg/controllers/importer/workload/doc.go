// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

// Package workload asks imported clusters: what the credentials may do, which Nodes there are, and for a token of a
// ServiceAccount. It can ask for nothing else.
//
// Answers are bounded in size, number and time, and what is kept of them is charged to the budget of the process, in
// the name of the import's namespace. Of Nodes, labels, the version of the kubelet and readiness are kept. Redirects
// are not followed, and addresses are held against what kubeconfigs may name.
//
// # Where to change what
//
//   - what is asked, and what an answer may be: client.go; for tokens: token.go;
//   - what is kept of the answers, and for how long they count: clusters.go;
//   - what that costs whom: memory.go.
//
// # What does the owner of one imported cluster gain from the hub or another cluster through this?
//
// The API server is sent the credentials of its own kubeconfig, and no others. By large or slow answers its owner has
// the Nodes not be kept, and takes memory and time from the share of the namespace that imports the cluster. What an
// answer says is repeated in no error.
package workload
