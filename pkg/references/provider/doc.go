// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

// Package provider resolves the generic references of managed resources in Crossplane's managed reconciler, for authors
// of providers.
//
// A provider embeds commonv1alpha1.References in the spec of its types, and passes a ReferenceResolver to the
// reconciler:
//
//	managed.NewReconciler(mgr, kind,
//		managed.WithReferenceResolver(provider.New(mgr.GetClient(), mgr.GetAPIReader(), mgr.GetRESTMapper())))
//
// It guarantees that references are resolved before the external resource is observed, that nothing is observed,
// created or updated while one fails (the managed resource is then Synced False), that a value is written once, by
// server-side apply, and that a managed resource without references costs nothing.
//
// What does the owner of one workload cluster gain from the hub or another cluster through this? Nothing: it runs in
// providers, with their rights. These are wide: a provider can read Secrets everywhere. So references.Tenancy applies
// here as well: a namespaced managed resource references its own namespace, and others only by ReferenceGrants
// (WithReferenceGrants); values from Secrets go into marked fields only.
package provider
