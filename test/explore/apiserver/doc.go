// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

// Package apiserver is a Kubernetes API server in memory, behind an http.RoundTripper, that does nothing on its own:
// each request is executed when RoundTrip is called, each event reaches its watcher when Watch.Deliver is called, and
// each step of the garbage collector and of the controllers of namespaces and definitions happens when it is chosen
// from Pending. So a test decides the order of everything, and a million orders fit into minutes.
//
// It keeps what a controller depends on: resource versions and optimistic locking, UIDs, generations, finalizers,
// ownerReferences, preconditions, the three patches and server-side apply with managed fields, defaulting, pruning and
// validation by structural schemas and their rules, the status subresource, namespaces and definitions that come and
// go, watches with initial events, bookmarks, expiry and selectors. Managed fields, schemas and patches are those of
// the Kubernetes libraries. TestSameAsReal holds it against kube-apiserver over random sequences of requests.
//
// It lacks authentication and authorization, conversion between versions, admission plugins (Server.Admit stands for
// one), protobuf, tables and pagination.
package apiserver
