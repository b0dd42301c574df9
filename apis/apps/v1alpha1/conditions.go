// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// Types of the conditions of an Application.
const (
	// ConditionInstalled says whether every component and every dependency is installed.
	ConditionInstalled = "Installed"

	// ConditionReady says whether the Application is installed and healthy and, if it has a health check, passes it. Its reason
	// and its message are those of the first of the other conditions that is not so.
	ConditionReady = "Ready"

	// ConditionStalled is True while somebody has to do something before the Application can become ready, and absent otherwise.
	ConditionStalled = "Stalled"

	// ConditionHealthCheckPassed says what the health check's Pod says. It is Unknown without a health check, which is no
	// reason not to be ready.
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

	// ReasonComponentsNotWatched: it is not known whether a component is installed. Used by Healthy, too.
	ReasonComponentsNotWatched = "ComponentsNotWatched"
)

// ReasonReady of the condition Ready: everything is installed and healthy, and the health check, if there is one, passes. Its other
// reasons are those of the conditions Installed, Healthy, HealthCheckPassed and ComponentsWatched.
const ReasonReady = "Ready"

// Reasons of the condition HealthCheckPassed.
const (
	// ReasonNoHealthCheck: the Application has no health check.
	ReasonNoHealthCheck = "NoHealthCheck"

	// ReasonHealthCheckReady: the health check's Pod is ready.
	ReasonHealthCheckReady = "HealthCheckReady"

	// ReasonHealthCheckNotReady: the health check's Pod is not ready.
	ReasonHealthCheckNotReady = "HealthCheckNotReady"

	// ReasonHealthCheckStarting: the health check's Pod is being made, or has no condition Ready yet.
	ReasonHealthCheckStarting = "HealthCheckStarting"

	// ReasonHealthCheckRefused: the API server refuses the health check's Pod.
	ReasonHealthCheckRefused = "HealthCheckRefused"

	// ReasonObserveOnly: the EnrollmentClass of the cluster has Masthead observe only, so that health checks are not run.
	ReasonObserveOnly = "ObserveOnly"

	// ReasonHealthCheckForbidden: Masthead lacks the right to make, to delete or to watch the health check's Pod.
	ReasonHealthCheckForbidden = "HealthCheckForbidden"
)

// Reasons of the condition Healthy.
const (
	// ReasonHealthy: every component is healthy.
	ReasonHealthy = "Healthy"

	// ReasonComponentsSuspended, ReasonComponentsProgressing, ReasonComponentsUnknown and ReasonComponentsDegraded: that is the
	// worst state that a component is in. ReasonComponentsMissing is used here, too.
	ReasonComponentsSuspended   = "ComponentsSuspended"
	ReasonComponentsProgressing = "ComponentsProgressing"
	ReasonComponentsUnknown     = "ComponentsUnknown"
	ReasonComponentsDegraded    = "ComponentsDegraded"
)

// Reasons of the condition ComponentsWatched, and of components that Masthead cannot see.
const (
	// ReasonWatched: the objects of every kind are seen.
	ReasonWatched = "Watched"

	// ReasonSyncing: the objects of a kind have not been read yet.
	ReasonSyncing = "Syncing"

	// ReasonKindNotServed: the cluster does not serve a kind.
	ReasonKindNotServed = "KindNotServed"

	// ReasonKindForbidden: Masthead lacks the right to list and watch a kind.
	ReasonKindForbidden = "KindForbidden"

	// ReasonKindStale: for some minutes the cluster has answered no request for the objects of a kind, so that nobody knows how they
	// fare now.
	ReasonKindStale = "KindStale"

	// ReasonKindTooLarge: the cluster has more objects of a kind than Masthead keeps.
	ReasonKindTooLarge = "KindTooLarge"

	// ReasonClusterScoped: a kind has no namespace, so its objects cannot belong to an Application.
	ReasonClusterScoped = "ClusterScoped"

	// ReasonOwnershipForbidden: Masthead lacks the right to patch a kind, so its objects are not deleted with the Application.
	ReasonOwnershipForbidden = "OwnershipForbidden"

	// ReasonNotAllowed: the EnrollmentClass of the cluster does not let Applications of this namespace see, or own, what is asked for.
	ReasonNotAllowed = "NotAllowed"

	// ReasonTooManyDiscovered: more objects are discovered than an Application can have, or an inventory names more than is read.
	ReasonTooManyDiscovered = "TooManyDiscovered"

	// ReasonNoInventory: what applied the objects has no inventory, and spec.discover names no kinds.
	ReasonNoInventory = "NoInventory"

	// ReasonInventoryNotUnderstood: an inventory has entries of which nobody knows what they name.
	ReasonInventoryNotUnderstood = "InventoryNotUnderstood"

	// ReasonNotEnrolled: the cluster was un-enrolled, and nobody looks any more.
	ReasonNotEnrolled = "NotEnrolled"
)

// Reasons of components, beside those that their health has.
const (
	// ReasonNotFound: there is no object of the kind and name.
	ReasonNotFound = "NotFound"

	// ReasonLabelsDoNotMatch: there is such an object with the annotation, and the selector does not match its labels.
	ReasonLabelsDoNotMatch = "LabelsDoNotMatch"

	// ReasonTerminating: the object is being deleted.
	ReasonTerminating = "Terminating"
)

// ReasonHealthChanged of Events: the health of an Application has changed.
const ReasonHealthChanged = "HealthChanged"
