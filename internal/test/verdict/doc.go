// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

// Package verdict checks how third-party tools judge our objects: kstatus, which Flux and Helm use to wait, Argo CD's
// health checks in Lua, and Flux's health checks in CEL. The Lua and the CEL are those that docs/gitops.md
// tells users to copy, taken from that page.
//
// Each package that computes a status has a Table of every state that the status can be in, created by the production
// code, and Check checks that all tools come to the verdict that a person would. Reasons reads the constants of the
// reasons from the source, so that a reason without a row fails the test.
package verdict
