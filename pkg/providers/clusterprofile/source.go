// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterprofile

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	inventoryv1alpha1 "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/source"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/providers/connection"
	"github.com/masthead-dev/masthead/pkg/providers/credentials"
)

// SourceName is the first part of the names of clusters that come from ClusterProfiles.
const SourceName = "clusterprofile"

const (
	// ProfileLabel on a Secret names the ClusterProfile whose credentials it holds (KEP-4322).
	ProfileLabel = "x-k8s.io/cluster-profile"

	// ProfileNamespaceLabel on a Secret is the namespace of that ClusterProfile. Default: the Secret's.
	ProfileNamespaceLabel = "x-k8s.io/cluster-profile-namespace"
)

// Options of a Source.
type Options struct {
	// Cached reads ClusterProfiles from the hub's cache. Required.
	Cached client.Reader
	// Live reads single Secrets from the hub's API server. Required.
	Live client.Reader
	// SecretMetadata is a cache of the metadata of Secrets. Default: the hub's cache. The hub's cache allows one selector
	// for Secrets; a separate cache lets each source use its own. The caller must start it.
	SecretMetadata cache.Cache
	// Plugins provide the credentials of other access providers. Default: none.
	Plugins Plugins
	// Credentials restrict the clusters that a plugin is run for.
	Credentials credentials.Options
	// Clock tells when credentials of a plugin expire. Default: the real clock.
	Clock clock.PassiveClock
}

// Source enrols labelled ClusterProfiles.
type Source struct {
	profiles client.Reader
	secrets  client.Reader
	live     client.Reader
	metadata cache.Cache
	plugins  *pluginRunner
}

var _ connection.Source = &Source{}

// New returns a Source.
func New(o Options) (*Source, error) {
	if o.Cached == nil || o.Live == nil {
		return nil, errors.New("a cached and a live reader of the hub are required")
	}
	s := &Source{profiles: o.Cached, secrets: o.Cached, live: o.Live, metadata: o.SecretMetadata}
	s.plugins = newPluginRunner(o)
	if o.SecretMetadata != nil {
		s.secrets = o.SecretMetadata
	}
	return s, nil
}

// Name returns SourceName.
func (s *Source) Name() string { return SourceName }

// Describe returns the enrolment of a ClusterProfile and its Secret's metadata.
func (s *Source) Describe(ctx context.Context, nn types.NamespacedName) (*connection.Enrolment, error) {
	p, err := s.foreign(ctx, nn)
	if errors.Is(err, connection.ErrNotEnrolled) {
		s.plugins.forget(nn)
	}
	if err != nil {
		return nil, err
	}
	class, ok := connection.EnrolledClass(p.Labels)
	if !ok {
		return nil, connection.ErrNotEnrolled
	}
	_, paused := p.Annotations[clusterv1.PausedAnnotation]
	e := &connection.Enrolment{
		Object: connection.ObjectReference{
			GroupVersionKind: inventoryv1alpha1.GroupVersion.WithKind("ClusterProfile"),
			Namespace:        p.Namespace, Name: p.Name, UID: p.UID, CreationTimestamp: p.CreationTimestamp,
		},
		Class:        class,
		Identifier:   p.Annotations[fleetv1alpha1.ClusterIdentifierAnnotation],
		TakeOverFrom: p.Annotations[fleetv1alpha1.TakeOverFromAnnotation],
		Paused:       paused,
		Deleting:     !p.DeletionTimestamp.IsZero(),
		Ready:        true,
		Secret:       "Secret that an access provider names",
	}
	a, problem := parseAccess(p, s.plugins.names(p.Namespace))
	if problem != nil {
		e.Ready, e.NotReadyReason, e.NotReadyMessage = false, problem.Reason, problem.Message
		return e, nil //nolint:nilerr // The enrolment says what is wrong.
	}
	if a.secret == "" {
		e.CredentialsVersion = s.plugins.version(nn) + "/" + a.digest
		return e, nil
	}
	e.Secret = fmt.Sprintf("Secret %q with the label %s=%s in the namespace %q",
		a.secret, ProfileLabel, p.Name, p.Namespace)
	at := types.NamespacedName{Namespace: p.Namespace, Name: a.secret}
	m := metadataOfSecret()
	switch err := s.secrets.Get(ctx, at, m); {
	case apierrors.IsNotFound(err):
	case err != nil:
		return nil, fmt.Errorf("cannot get the metadata of Secret %q: %w", at, err)
	case namedProfile(m) == p.Name:
		// The server is the profile's: if it changes, there are other credentials, too.
		e.CredentialsVersion = connection.CredentialsVersion(m) + "/" + a.digest
	}
	return e, nil
}

// foreign returns a ClusterProfile of another cluster manager; ErrNotEnrolled if there is none of that name.
func (s *Source) foreign(ctx context.Context, nn types.NamespacedName) (*inventoryv1alpha1.ClusterProfile, error) {
	p := &inventoryv1alpha1.ClusterProfile{}
	switch err := s.profiles.Get(ctx, nn, p); {
	case apierrors.IsNotFound(err):
		return nil, connection.ErrNotEnrolled
	case err != nil:
		return nil, fmt.Errorf("cannot get ClusterProfile %q: %w", nn, err)
	case IsPublished(p):
		return nil, connection.ErrNotEnrolled
	}
	return p, nil
}

// IsPublished reports whether a ClusterProfile bears a mark of those that Masthead publishes. Any is enough: the
// profile of an enrolled cluster must not enrol it once more.
func IsPublished(p *inventoryv1alpha1.ClusterProfile) bool {
	_, named := p.Annotations[fleetv1alpha1.ClusterNameAnnotation]
	return named || p.Spec.ClusterManager.Name == fleetv1alpha1.FieldManager ||
		p.Labels[inventoryv1alpha1.LabelClusterManagerKey] == fleetv1alpha1.FieldManager
}

// Kubeconfig reads the Secret of the ClusterProfile, or runs a plugin. No location is returned: the Secret need not
// hold a kubeconfig, and the enrolled profile itself says how others reach the cluster.
func (s *Source) Kubeconfig(ctx context.Context, e *connection.Enrolment) (connection.Kubeconfig, error) {
	nn := types.NamespacedName{Namespace: e.Object.Namespace, Name: e.Object.Name}
	p, err := s.foreign(ctx, nn)
	if errors.Is(err, connection.ErrNotEnrolled) || err == nil && p.UID != e.Object.UID {
		return connection.Kubeconfig{}, fmt.Errorf("cannot find the enrolled ClusterProfile %q: %w",
			nn, connection.ErrNoCredentials)
	}
	if err != nil {
		return connection.Kubeconfig{}, err
	}
	a, problem := parseAccess(p, s.plugins.names(p.Namespace))
	if problem != nil {
		return connection.Kubeconfig{}, &credentials.InvalidError{Reason: credentials.ReasonRefused, Message: problem.Message}
	}
	if a.secret == "" {
		return s.plugins.kubeconfig(ctx, nn, a)
	}
	secret, err := connection.CredentialsSecret(ctx, s.live, types.NamespacedName{Namespace: p.Namespace, Name: a.secret})
	if err != nil {
		return connection.Kubeconfig{}, err
	}
	if namedProfile(secret) != p.Name {
		return connection.Kubeconfig{}, &credentials.InvalidError{Reason: credentials.ReasonNotOurs, Message: fmt.Sprintf(
			"Secret %q does not carry the label %s=%s, or carries %s for another namespace",
			secret.Name, ProfileLabel, p.Name, ProfileNamespaceLabel)}
	}
	data, err := a.compose(secret)
	if err != nil {
		return connection.Kubeconfig{}, err
	}
	return connection.Kubeconfig{Data: data}, nil
}

// Watches triggers on every change of a ClusterProfile that is not Masthead's, and of the metadata of a Secret that
// names one. No predicate filters by the enrolment label: an update that removes it must pass, and Describe decides.
func (s *Source) Watches(hub cluster.Cluster) ([]source.TypedSource[connection.Key], error) {
	metadata := s.metadata
	if metadata == nil {
		metadata = hub.GetCache()
	}
	return []source.TypedSource[connection.Key]{
		source.TypedKind(hub.GetCache(), &inventoryv1alpha1.ClusterProfile{}, handler.TypedEnqueueRequestsFromMapFunc(
			func(_ context.Context, p *inventoryv1alpha1.ClusterProfile) []connection.Key { return keysOfProfile(p) })),
		source.TypedKind(metadata, metadataOfSecret(), handler.TypedEnqueueRequestsFromMapFunc(
			func(_ context.Context, m *metav1.PartialObjectMetadata) []connection.Key { return keysOfSecret(m) })),
	}, nil
}

// keysOfProfile spares the queue the profiles of the whole fleet. One that becomes Masthead's is passed as it was.
func keysOfProfile(p *inventoryv1alpha1.ClusterProfile) []connection.Key {
	if IsPublished(p) {
		return nil
	}
	return []connection.Key{connection.NewKey(SourceName, client.ObjectKeyFromObject(p))}
}

func keysOfSecret(m *metav1.PartialObjectMetadata) []connection.Key {
	name := namedProfile(m)
	if name == "" {
		return nil
	}
	return []connection.Key{{Source: SourceName, Namespace: m.Namespace, Name: name}}
}

// namedProfile returns the name of the ClusterProfile of a Secret's namespace whose credentials it holds, or "". Other
// tools copy Secrets to the namespaces of consumers, and label them with the namespace of the profile that they mean.
// Who may write profiles beside the copy must not get what it holds with one of the same name.
func namedProfile(secret metav1.Object) string {
	labels := secret.GetLabels()
	if namespace, ok := labels[ProfileNamespaceLabel]; ok && namespace != secret.GetNamespace() {
		return ""
	}
	return labels[ProfileLabel]
}

func metadataOfSecret() *metav1.PartialObjectMetadata {
	m := &metav1.PartialObjectMetadata{}
	m.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Secret"))
	return m
}
