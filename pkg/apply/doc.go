// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

// Package apply updates objects by server-side apply such that what was wanted is there afterwards, or that the error
// names the field. API servers do neither in three cases:
//
//   - A map, or a list merged by keys, that loses the last entry of its manager becomes null, not empty
//     (structured-merge-diff#305), and is then rejected or, in a free-form object, stored.
//   - A value of the wrong type is answered with code 500, as if the server were broken. Refusal recognises it.
//   - An object with values of types that its definition no longer permits cannot be applied to at all.
//
// In the first and third case the object is first prepared by a JSON patch, which needs no merging. Where none of this
// is needed there is only the apply. Each request is conditional on the UID and resource version of the object.
//
// What other managers own is not touched: an empty map that is wanted means that it has no entries of ours, and those
// of others stay in it. That is what server-side apply does, and two managers would otherwise fight.
//
// Status is none of this: it is conditional on the UID alone, and takes fields over from other managers.
package apply
