// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// What people write on the components of an Application.
const (
	// ApplicationAnnotation on an object names the Application, in the object's own namespace, of which it is a component. The
	// name is the KEP's.
	ApplicationAnnotation = "kubernetes.io/application"

	// IgnoreHealthAnnotation on an object, with the value "true", leaves the object out of the health of its Application. Its
	// own health is shown all the same.
	IgnoreHealthAnnotation = "apps.masthead.dev/ignore-health"
)

// What Masthead writes in a workload cluster because of Applications.
const (
	// HealthCheckLabel is set on health-check Pods, and holds the name of their Application, or, where that is longer than a
	// label's value can be, its first characters.
	HealthCheckLabel = "apps.masthead.dev/health-check"

	// TemplateHashLabel is set on health-check Pods, and holds the hash of the template that they were made from.
	TemplateHashLabel = "apps.masthead.dev/template-hash"

	// DefinitionRevisionAnnotation is set on the CustomResourceDefinition of Applications, and holds the revision of the
	// definition, a number that grows. A manager never replaces a definition by one with a smaller number.
	DefinitionRevisionAnnotation = "apps.masthead.dev/definition-revision"

	// DefinitionWrittenAnnotation is set on the CustomResourceDefinition of Applications. It holds a hash of what Masthead wrote,
	// and the generation that the definition had then.
	DefinitionWrittenAnnotation = "apps.masthead.dev/definition-written"

	// FieldManager is the field manager of what Masthead writes on Applications and their components.
	FieldManager = "masthead-application"
)

// What other tools write on the objects that they apply, by which Applications discover them.
const (
	// PartOfLabel and InstanceLabel are recommended by Kubernetes.
	PartOfLabel   = "app.kubernetes.io/part-of"
	InstanceLabel = "app.kubernetes.io/instance"

	// HelmReleaseNameAnnotation and HelmReleaseNamespaceAnnotation are set by Helm on all that it installs.
	HelmReleaseNameAnnotation      = "meta.helm.sh/release-name"
	HelmReleaseNamespaceAnnotation = "meta.helm.sh/release-namespace"

	// FluxKustomizationNameLabel, FluxKustomizationNamespaceLabel, FluxHelmReleaseNameLabel and FluxHelmReleaseNamespaceLabel are set
	// by Flux on all that it applies.
	FluxKustomizationNameLabel      = "kustomize.toolkit.fluxcd.io/name"
	FluxKustomizationNamespaceLabel = "kustomize.toolkit.fluxcd.io/namespace"
	FluxHelmReleaseNameLabel        = "helm.toolkit.fluxcd.io/name"
	FluxHelmReleaseNamespaceLabel   = "helm.toolkit.fluxcd.io/namespace"

	// ArgoTrackingAnnotation is set by Argo CD on all that it applies, and ArgoInstanceLabel if it tracks by that label.
	ArgoTrackingAnnotation = "argocd.argoproj.io/tracking-id"
	ArgoInstanceLabel      = "argocd.argoproj.io/instance"
)
