// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

// Package tokentest is what tests of tokens share: the endpoints of clouds as servers of this process, which answer
// each request as a test says. A fake cloud that checks what it is sent is in internal/test/fakecloud.
package tokentest
