// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

// Package tokentest is what tests of tokens share: the endpoints of clouds as servers of this process, which answer
// each request as a test says. A fake cloud that checks what it is sent is in test/fakecloud.
//
// What does the owner of one workload cluster gain from the hub or another cluster through this? Nothing: it is used in
// tests only.
package tokentest
