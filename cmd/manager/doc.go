// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

// Command manager is Masthead: the one program that runs in the hub. It holds flags and wiring and no logic.
//
// It guarantees that if the hub lacks a CRD or a right that Masthead needs, one message names all of them and says what
// to install, in the log and at /readyz. The program then waits instead of exiting: a Deployment would restart it again
// and again, and the message would be lost among restarts.
package main
