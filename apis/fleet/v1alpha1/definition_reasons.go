// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// Reasons why a definition of Masthead, of claims, copies or Applications, is not in use in a workload cluster, in events
// and in the ClusterProfile's condition KindsServed.
const (
	// ReasonDefinitionForeign: the cluster has a CustomResourceDefinition of that name which is not Masthead's.
	ReasonDefinitionForeign = "ForeignDefinition"

	// ReasonDefinitionRejected: the cluster's API server refused the CustomResourceDefinition; the message says why.
	ReasonDefinitionRejected = "DefinitionRejected"

	// ReasonDefinitionForbidden: the cluster refused the CustomResourceDefinition with 403: a right is missing, or an
	// admission policy denies it.
	ReasonDefinitionForbidden = "DefinitionForbidden"

	// ReasonDefinitionNotServed: the definition exists, but the cluster does not serve its kind, as when another
	// definition has its names; the message says why.
	ReasonDefinitionNotServed = "DefinitionNotServed"

	// ReasonDefinitionConversion: the version in which claims are pushed has changed in the hub, and the cluster has
	// objects of another one, which only the hub's conversion webhook could convert. None of them is synchronised.
	ReasonDefinitionConversion = "ConversionNeeded"

	// ReasonDefinitionNewer: a newer manager has installed its definition of Applications. It is used as is, and nothing
	// is missing.
	ReasonDefinitionNewer = "DefinitionNewer"
)
