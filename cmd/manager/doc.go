// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

// Command manager is Masthead: the one program that runs in the hub. It holds flags and wiring and no logic.
//
// It guarantees that a hub which lacks something that Masthead needs, a CRD or a right, gets one message that names all
// of it and says what to install, in the log and at /readyz, and that the program then waits for it instead of ending:
// ended, a Deployment would start it again and again, and the message would be lost among restarts.
//
// What does the owner of one workload cluster gain from the hub or another cluster through this? Nothing: what is set
// here (limits, time-outs, which kubeconfigs are refused) is the same for every cluster, and is set by whoever runs the
// hub.
package main
