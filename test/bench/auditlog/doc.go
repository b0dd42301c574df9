// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

// Package auditlog counts the requests of one user to an API server, from its audit log at the level Metadata.
package auditlog
