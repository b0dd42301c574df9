// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

// Package fakecloud plays Amazon, Azure and Google and the Crossplane providers that talk to them, on a real API server
// as the hub. It is for tests of whatever creates managed resources, above all of the importer.
//
//	cloud := fakecloud.New()
//	cloud.AddEKS(fakecloud.EKS{Region: "eu-central-1", Name: "shop", API: api, NodeGroups: []fakecloud.NodeGroup{{Name: "blue"}}})
//	cloud.FailOnMutation(t)
//	go cloud.Run(ctx, hubConfig)
//
// # Guarantees
//
//   - A managed resource is reconciled by crossplane-runtime's own reconciler, with the management policies switched on
//     as the providers switch them on, for a ClusterAuth without them. What this package adds is the part behind
//     ExternalClient: what the provider asks its cloud.
//   - A resource is found as the provider finds it: by its external name, and by the identifiers in forProvider and in
//     the ProviderConfig. An identifier that is missing is an error, a resource that is not there does not exist.
//   - status.atProvider has the fields of the provider, in the shape of the CRD that the hub serves: what one version
//     has as an object another has as a list of one.
//   - Every attempt to change the cloud is counted (Mutations), and done as the cloud would do it, so that the harm of
//     a missing guard can be seen. What the cloud would refuse is refused, and counted all the same.
//   - A provider that may update adds its tags to what it manages, as the real ones do. So a managed resource with more
//     than the policy Observe is caught at its first reconciliation.
//   - A kubeconfig works: it leads to the real API server that a test names, with a token that this server accepts.
//     Every refresh of a ClusterAuth gives another token; the credentials of an AKS cluster change when they are
//     rotated.
//   - A TokenEndpoint gives tokens to whom Google and Entra ID would: it verifies the signature and the claims of an
//     assertion, and the tenant, the client, the secret and the scope of a request.
//
// # What does the owner of one workload cluster gain from the hub or another cluster through this?
//
// Nothing: it is used in tests and in the demo only.
package fakecloud
