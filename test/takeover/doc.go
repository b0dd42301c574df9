// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

// Package takeover proves that an imported cluster is not touched by Crossplane's providers, by Cluster API's providers
// or by Cluster API core. Each guard is removed by itself, and the others must hold. Then all of them are removed, and
// the harm must show, because otherwise the tests would prove nothing.
//
// The results of the tests are in the tables of docs/design/importer-safety.md. A test fails if a table differs from
// its result; with -update it writes the table.
package takeover
