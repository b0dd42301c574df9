// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

// Package importertest holds the fixture of the importer's tests: a hub with the providers of a simulated cloud, its
// admission policies and the rules of Cluster API's providers, and what users create there and wait for. The hub is
// also the API server of the imported clusters.
package importertest
