// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

// Command release creates the parts of a release of Masthead without a container engine: the image, the list of its
// contents (SPDX), and the licences of all modules. hack/image.sh and hack/release.sh call it.
//
// It guarantees:
//   - The same inputs give the same bytes: every time stamp is SOURCE_DATE_EPOCH, every list is sorted, and the layers
//     contain nothing of the machine that created them.
//   - The image contains the manager, the root certificates of the Web, a user without rights, and the licences. There
//     is no shell, no package manager and no base image.
//   - The list and the licences are read from the binary that is shipped, not from go.mod: a module that is not linked
//     is not listed, and a module without a recognisable licence fails the release.
package main
