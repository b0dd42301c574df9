// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

// Package fakecloud simulates Amazon, Azure and Google and the Crossplane providers that talk to them, with a real API
// server as the hub.
//
//	cloud := fakecloud.New()
//	cloud.AddEKS(fakecloud.EKS{Region: "eu-central-1", Name: "shop", API: api, NodeGroups: []fakecloud.NodeGroup{{Name: "blue"}}})
//	cloud.FailOnMutation(t)
//	go cloud.Run(ctx, hubConfig)
//
// It guarantees:
//
//   - A managed resource is reconciled by crossplane-runtime's own reconciler. Management policies are enabled as the
//     providers enable them, and not for a ClusterAuth.
//
//   - A resource is found as the provider finds it: by its external name, and by the identifiers in forProvider and in
//     the ProviderConfig. A missing identifier is an error; a missing resource is reported as not existing.
//
//   - status.atProvider has the fields of the provider, in the shape of the CRD that the hub serves: an object in one
//     version is a list of one in another.
//
//   - Every attempt to change the cloud is counted (Mutations), and carried out as the cloud would do it.
//
//   - A provider that may update adds its tags to what it manages, as the real ones do. So a managed resource with more
//     than the policy Observe is caught at its first reconciliation.
//
//   - A kubeconfig works: it leads to the real API server that a test names, with a token that this server accepts.
//
//   - A TokenEndpoint gives tokens to the accounts that would get them from Google and Entra ID: it verifies the
//     signature and the claims of an assertion, and the tenant, the client, the secret and the scope of a request.
package fakecloud
