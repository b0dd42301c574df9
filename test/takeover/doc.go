// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

// Package takeover is the proof that a cluster which was imported is not touched: neither by Crossplane's providers,
// nor by Cluster API's providers, nor by Cluster API core. Each guard is removed by itself, and the others must hold;
// then all of them, and the harm must show, for otherwise the proof would prove nothing.
//
// What the tests find out is in the tables of docs/design/importer-safety.md. A test fails when a table differs from
// what it finds; with -update it writes the table.
//
// What does the owner of one workload cluster gain from the hub or another cluster through this? Nothing: there are
// tests only.
package takeover
