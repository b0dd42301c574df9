// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// Annotations that users set on the components of an Application.
const (
	// ApplicationAnnotation on an object names the Application, in the object's namespace, that it is a component of. The
	// name is the KEP's.
	ApplicationAnnotation = "kubernetes.io/application"

	// IgnoreHealthAnnotation on an object, with the value "true", excludes it from the health of its Application. Its own
	// health is still shown.
	IgnoreHealthAnnotation = "apps.masthead.dev/ignore-health"
)

// Metadata that Masthead sets in a workload cluster for Applications.
const (
	// HealthCheckLabel is set on health-check Pods to the name of their Application, truncated to the maximum length of a
	// label value.
	HealthCheckLabel = "apps.masthead.dev/health-check"

	// TemplateHashLabel is set on health-check Pods to the hash of their template.
	TemplateHashLabel = "apps.masthead.dev/template-hash"

	// DefinitionRevisionAnnotation is set on the CustomResourceDefinition of Applications to its revision, an increasing
	// number. A manager never replaces a definition by an older one.
	DefinitionRevisionAnnotation = "apps.masthead.dev/definition-revision"

	// DefinitionWrittenAnnotation is set on the CustomResourceDefinition of Applications. It holds a hash of what Masthead
	// wrote, and the generation that the definition had then.
	DefinitionWrittenAnnotation = "apps.masthead.dev/definition-written"

	// FieldManager is the field manager of what Masthead writes on Applications and their components.
	FieldManager = "masthead-application"
)

// Metadata that other tools set on the objects that they apply, by which Applications discover them.
const (
	// PartOfLabel and InstanceLabel are recommended by Kubernetes.
	PartOfLabel   = "app.kubernetes.io/part-of"
	InstanceLabel = "app.kubernetes.io/instance"

	// HelmReleaseNameAnnotation and HelmReleaseNamespaceAnnotation are set by Helm on everything it installs.
	HelmReleaseNameAnnotation      = "meta.helm.sh/release-name"
	HelmReleaseNamespaceAnnotation = "meta.helm.sh/release-namespace"

	// FluxKustomizationNameLabel, FluxKustomizationNamespaceLabel, FluxHelmReleaseNameLabel and
	// FluxHelmReleaseNamespaceLabel are set by Flux on everything it applies.
	FluxKustomizationNameLabel      = "kustomize.toolkit.fluxcd.io/name"
	FluxKustomizationNamespaceLabel = "kustomize.toolkit.fluxcd.io/namespace"
	FluxHelmReleaseNameLabel        = "helm.toolkit.fluxcd.io/name"
	FluxHelmReleaseNamespaceLabel   = "helm.toolkit.fluxcd.io/namespace"

	// ArgoTrackingAnnotation is set by Argo CD on everything it applies, and ArgoInstanceLabel if it tracks by that
	// label.
	ArgoTrackingAnnotation = "argocd.argoproj.io/tracking-id"
	ArgoInstanceLabel      = "argocd.argoproj.io/instance"
)
