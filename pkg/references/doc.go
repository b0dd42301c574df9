// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

// Package references resolves generic references: it fills fields of an object with values of other objects, as its
// spec.references says. docs/references.md is for users. Package provider, below, is for authors of Crossplane
// providers.
//
// It guarantees:
//
//   - References are resolved in order, up to the first failure, which is an Error with its index, the object and the
//     path.
//   - A field that has a value is left alone, and its source is not even read, unless the reference follows its source.
//     Types are preserved: a number stays one.
//   - Resolve writes nothing. The filled object is in the Result, and is the input if nothing changed.
//     ApplyConfiguration turns it into what must be applied.
//   - Each referenced object is read once per Request, by name, from the API server. References never cause a watch.
//   - A resource is that of the requested group, or none. Permissions apply to all versions of a resource alike, and to
//     both groups of the few kinds that are served in two, such as events.
//   - Only fields in spec are filled, and never spec.references itself.
//   - Values from Secrets go only into fields that the author of the kind marked with format: password, or that the
//     operator allowed. A Secret is not read for any other field. No error repeats such a value, not even through an
//     expression or the API server's answer (Result.Secret). A marked field of another object is treated like a
//     Secret, if the marked fields of its kind are known (Request.Marked).
//
// Bounds: 128 references of 16 variables each; paths of 1,024 characters and 64 segments, with indices up to 1,024 and
// at most 256 fields for a wildcard; a value has 64 KiB, 4,096 fields and elements, and a depth of 32, and all values
// filled into an object 256 KiB. A list grows by one element at a time. The references of one object read 256 objects,
// of which 16 MiB are kept. Expressions are linear (expression.CompileLinear): no value in them is larger than their
// text and their input, which has 32 KiB, by more than a small factor.
//
// What does the owner of one workload cluster gain from the hub or another cluster through this? Nothing: a Request
// reads one cluster, with the Reader that it was given. The owner can only fill their own objects with their own
// values. Objects that are large, or are not what they claim to be, cost no more than the bounds say.
package references
