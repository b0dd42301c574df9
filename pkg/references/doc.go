// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

// Package references resolves generic references: it fills fields of an object with values of others, as
// spec.references says. docs/references.md is for users and has the bounds; package provider is for authors of
// Crossplane providers. It guarantees:
//
//   - References are resolved in order, up to the first failure, an Error with index, object and path. A field that has
//     a value is left alone, and its source is not read, unless the reference follows it. Types are preserved.
//   - Resolve writes nothing: ApplyConfiguration turns its Result into what must be applied. Only fields in spec are
//     filled, never spec.references.
//   - Each object is read once per Request, by name. Permissions apply to all versions of a resource, and to both
//     groups of the few kinds that are served in two.
//   - Values of Secrets go only into fields marked with format: password, or that the operator allowed; a Secret is not
//     read for any other. No error repeats such a value. A marked field of another object is treated like a Secret.
//   - Expressions are linear (expression.CompileLinear): no value is larger than their text and input by more than a
//     small factor.
//
// A Request reads one cluster, with the Reader that it was given.
package references
