// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

// Package verdict asks the tools of other people what they make of an object of ours: kstatus, which Flux and Helm wait
// with, Argo CD's health checks in Lua, and Flux's health checks in CEL. The Lua and the CEL are those that
// docs/argo-cd.md and docs/flux.md tell users to copy, taken out of these pages.
//
// Each package that computes a status has a Table of every state that the status can be in, made by the code that runs
// in production, and Check sees that all tools come to the verdict that a person would. Reasons reads the constants of
// the reasons out of the source, so that a reason without a row fails the test.
//
// What the owner of one workload cluster gains through this: nothing, it is used by tests alone.
package verdict
