// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

// Package references resolves generic references: it fills fields of an object with values of others, as the object's
// spec.references says. docs/references.md is for users. Package provider, below, is for authors of Crossplane
// providers.
//
// It guarantees:
//
//   - References are resolved in their order. The first that fails ends it, with an Error that names its index, the
//     object and the path.
//   - A field that has a value is left alone, and what it would have been filled with is not even read, unless the
//     reference says that the field follows its source. Types are kept: a number stays one.
//   - Resolve writes nothing. What it filled in is in the Result, and nothing is if nothing changed. ApplyConfiguration
//     makes of it what has to be applied.
//   - Each object that is referenced is read once in a Request, by its name, from the API server. No kind is ever
//     watched because of it.
//   - A resource is that of the group that was asked for, or none. Versions of one resource are one resource: what is
//     permitted or refused for one is so for all. So are the two groups in which a few kinds are served, such as that
//     of events.
//   - Only fields in spec are filled, and never spec.references itself.
//   - What a Secret holds goes only into fields that the author of the kind marked for it with format: password, or
//     that the operator allowed. A Secret is not read for any other field. No error repeats it, also not by way of an
//     expression or of the API server's answer (Result.Secret). A field of another object that is marked so is treated
//     like a Secret, if it is known what is marked of its kind (Request.Marked).
//
// Bounds: 128 references of 16 variables each; paths of 1,024 characters and 64 segments, with indices up to 1,024 and
// at most 256 fields for a wildcard; a value has 64 KiB, 4,096 fields and elements, and a depth of 32, and all that is
// filled into an object 256 KiB. A list grows by one element at a time. The references of one object read 256 objects,
// of which 16 MiB are kept. Expressions are linear (expression.CompileLinear): no value in them is larger than their
// text and their input, which has 32 KiB, by more than a small factor.
//
// What does the owner of one workload cluster gain from the hub or another cluster through this? Nothing: a Request
// reads one cluster, with the Reader that it was given. What the owner can do is have his own objects filled with what
// he has. That objects are large, or lie about what they are, costs no more than the bounds say.
package references
