// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// Types of the conditions of an Application.
const (
	// ConditionInstalled says whether every component and every dependency is installed.
	ConditionInstalled = "Installed"

	// ConditionReady says whether the Application is installed and healthy and, if it has a health check, passes it. Its
	// reason and message are those of the first other condition that is not met.
	ConditionReady = "Ready"

	// ConditionStalled is True while a user must act before the Application can become ready, and absent otherwise.
	ConditionStalled = "Stalled"

	// ConditionHealthCheckPassed is the result of the health check's Pod. Without a health check it is Unknown, which does
	// not prevent readiness.
	ConditionHealthCheckPassed = "HealthCheckPassed"

	// ConditionHealthy says whether every component is healthy.
	ConditionHealthy = "Healthy"

	// ConditionComponentsWatched says whether Masthead can see the objects of every kind that the components name.
	ConditionComponentsWatched = "ComponentsWatched"
)

// Reasons of the condition Installed.
const (
	// ReasonInstalled: everything is installed.
	ReasonInstalled = "Installed"

	// ReasonNoComponents: the Application names no components. Used by Healthy, too.
	ReasonNoComponents = "NoComponents"

	// ReasonComponentsMissing: a component is not installed.
	ReasonComponentsMissing = "ComponentsMissing"

	// ReasonDependenciesMissing: a dependency is not installed.
	ReasonDependenciesMissing = "DependenciesMissing"

	// ReasonComponentsNotWatched: whether a component is installed cannot be determined. Used by Healthy, too.
	ReasonComponentsNotWatched = "ComponentsNotWatched"
)

// ReasonReady of the condition Ready: everything is installed and healthy, and the health check, if any, passes. The
// other reasons are those of the conditions Installed, Healthy, HealthCheckPassed and ComponentsWatched.
const ReasonReady = "Ready"

// Reasons of the condition HealthCheckPassed.
const (
	// ReasonNoHealthCheck: the Application has no health check.
	ReasonNoHealthCheck = "NoHealthCheck"

	// ReasonHealthCheckReady: the health check's Pod is ready.
	ReasonHealthCheckReady = "HealthCheckReady"

	// ReasonHealthCheckNotReady: the health check's Pod is not ready.
	ReasonHealthCheckNotReady = "HealthCheckNotReady"

	// ReasonHealthCheckStarting: the health check's Pod is being created, or has no condition Ready yet.
	ReasonHealthCheckStarting = "HealthCheckStarting"

	// ReasonHealthCheckRefused: the API server rejects the health check's Pod.
	ReasonHealthCheckRefused = "HealthCheckRefused"

	// ReasonObserveOnly: the EnrollmentClass of the cluster allows observation only, so health checks are not run.
	ReasonObserveOnly = "ObserveOnly"

	// ReasonHealthCheckForbidden: Masthead lacks the right to create, delete or watch the health check's Pod.
	ReasonHealthCheckForbidden = "HealthCheckForbidden"
)

// Reasons of the condition Healthy.
const (
	// ReasonHealthy: every component is healthy.
	ReasonHealthy = "Healthy"

	// ReasonComponentsSuspended, ReasonComponentsProgressing, ReasonComponentsUnknown and ReasonComponentsDegraded: the
	// worst state of a component. ComponentsMissing is used here, too.
	ReasonComponentsSuspended   = "ComponentsSuspended"
	ReasonComponentsProgressing = "ComponentsProgressing"
	ReasonComponentsUnknown     = "ComponentsUnknown"
	ReasonComponentsDegraded    = "ComponentsDegraded"
)

// Reasons of the condition ComponentsWatched, and of components that Masthead cannot see.
const (
	// ReasonWatched: the objects of every kind are watched.
	ReasonWatched = "Watched"

	// ReasonSyncing: the objects of a kind have not been read yet.
	ReasonSyncing = "Syncing"

	// ReasonKindNotServed: the cluster does not serve a kind.
	ReasonKindNotServed = "KindNotServed"

	// ReasonKindForbidden: Masthead lacks the right to list and watch a kind.
	ReasonKindForbidden = "KindForbidden"

	// ReasonKindStale: for some minutes the cluster has answered no request for objects of a kind, so their health is not
	// known.
	ReasonKindStale = "KindStale"

	// ReasonKindTooLarge: the cluster has more objects of a kind than Masthead caches.
	ReasonKindTooLarge = "KindTooLarge"

	// ReasonClusterScoped: a kind is cluster-scoped, so its objects cannot belong to an Application.
	ReasonClusterScoped = "ClusterScoped"

	// ReasonOwnershipForbidden: Masthead lacks the right to patch a kind, so its objects are not deleted with the
	// Application.
	ReasonOwnershipForbidden = "OwnershipForbidden"

	// ReasonNotAllowed: the EnrollmentClass of the cluster does not let Applications of this namespace see, or own, the
	// objects.
	ReasonNotAllowed = "NotAllowed"

	// ReasonTooManyDiscovered: more objects are discovered, or named by an inventory, than the limit.
	ReasonTooManyDiscovered = "TooManyDiscovered"

	// ReasonNoInventory: the Kustomization or HelmRelease that applied the objects has no inventory, and spec.discover
	// names no kinds.
	ReasonNoInventory = "NoInventory"

	// ReasonInventoryNotUnderstood: an inventory has entries that cannot be parsed.
	ReasonInventoryNotUnderstood = "InventoryNotUnderstood"

	// ReasonNotEnrolled: the cluster was un-enrolled, and is no longer observed.
	ReasonNotEnrolled = "NotEnrolled"
)

// Reasons of components, besides those of their health.
const (
	// ReasonNotFound: no object of the kind and name exists.
	ReasonNotFound = "NotFound"

	// ReasonLabelsDoNotMatch: an object with the annotation exists, but the selector does not match its labels.
	ReasonLabelsDoNotMatch = "LabelsDoNotMatch"

	// ReasonTerminating: the object is being deleted.
	ReasonTerminating = "Terminating"

	// ReasonFinished: a Job has completed, and is, or was, deleted after its ttlSecondsAfterFinished.
	ReasonFinished = "Finished"
)

// ReasonHealthChanged of Events: the health of an Application has changed.
const ReasonHealthChanged = "HealthChanged"
