// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package kubeconfig

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/source"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/providers/connection"
	"github.com/masthead-dev/masthead/pkg/providers/credentials"
)

// SourceName is the first part of the names of clusters that come from labelled Secrets.
const SourceName = "kubeconfig"

// The keys of a Secret that may hold the kubeconfig.
const (
	keyKubeconfig = "kubeconfig"
	keyValue      = "value"
)

// Options of a Source.
type Options struct {
	// Cached reads the metadata of Secrets from the hub's cache. Required unless SecretMetadata is given.
	Cached client.Reader
	// Live reads single Secrets from the hub's API server. Required.
	Live client.Reader
	// SecretMetadata is a cache of the metadata of Secrets. Default: the hub's cache. The hub's cache allows one selector
	// for Secrets; a separate cache lets each source use its own. The caller must start it.
	SecretMetadata cache.Cache
}

// Source enrols labelled Secrets.
type Source struct {
	secrets  client.Reader
	live     client.Reader
	metadata cache.Cache
}

var _ connection.Source = &Source{}

// New returns a Source.
func New(o Options) (*Source, error) {
	s := &Source{secrets: o.Cached, live: o.Live, metadata: o.SecretMetadata}
	if o.SecretMetadata != nil {
		s.secrets = o.SecretMetadata
	}
	if s.secrets == nil || s.live == nil {
		return nil, errors.New("a cached and a live reader of the hub are required")
	}
	return s, nil
}

// Name returns SourceName.
func (s *Source) Name() string { return SourceName }

// Describe returns the enrolment of a Secret's metadata.
func (s *Source) Describe(ctx context.Context, nn types.NamespacedName) (*connection.Enrolment, error) {
	m := metadataOfSecret()
	if err := s.secrets.Get(ctx, nn, m); err != nil {
		if apierrors.IsNotFound(err) {
			return nil, connection.ErrNotEnrolled
		}
		return nil, fmt.Errorf("cannot get the metadata of Secret %q: %w", nn, err)
	}
	class, ok := connection.EnrolledClass(m.Labels)
	if !ok {
		return nil, connection.ErrNotEnrolled
	}
	return &connection.Enrolment{
		Object: connection.ObjectReference{
			GroupVersionKind: corev1.SchemeGroupVersion.WithKind("Secret"),
			Namespace:        m.Namespace, Name: m.Name, UID: m.UID, CreationTimestamp: m.CreationTimestamp,
		},
		Class:              class,
		Identifier:         m.Annotations[fleetv1alpha1.ClusterIdentifierAnnotation],
		TakeOverFrom:       m.Annotations[fleetv1alpha1.TakeOverFromAnnotation],
		Deleting:           !m.DeletionTimestamp.IsZero(),
		Ready:              true,
		Secret:             fmt.Sprintf("Secret %q in the namespace %q", m.Name, m.Namespace),
		CredentialsVersion: connection.CredentialsVersion(m),
	}, nil
}

// Kubeconfig reads the Secret.
func (s *Source) Kubeconfig(ctx context.Context, e *connection.Enrolment) (connection.Kubeconfig, error) {
	nn := types.NamespacedName{Namespace: e.Object.Namespace, Name: e.Object.Name}
	secret, err := connection.CredentialsSecret(ctx, s.live, nn)
	if err != nil {
		return connection.Kubeconfig{}, err
	}
	if secret.UID != e.Object.UID {
		// Re-created since the cache was read: once the cache catches up, it is another enrolment.
		return connection.Kubeconfig{}, fmt.Errorf("cannot use Secret %q, which is not the enrolled one: %w", nn, connection.ErrNoCredentials)
	}
	key, err := kubeconfigKey(secret)
	if err != nil {
		return connection.Kubeconfig{}, err
	}
	return connection.Kubeconfig{
		Data: secret.Data[key], SecretKey: connection.SecretKey{Namespace: nn.Namespace, Name: nn.Name, Key: key},
	}, nil
}

// kubeconfigKey returns the key of a Secret's kubeconfig. Two different values are refused: any choice would be a
// guess.
func kubeconfigKey(secret *corev1.Secret) (string, error) {
	a, hasA := secret.Data[keyKubeconfig]
	b, hasB := secret.Data[keyValue]
	switch {
	case hasA && hasB && !bytes.Equal(a, b):
		return "", &credentials.InvalidError{Reason: credentials.ReasonAmbiguous, Message: fmt.Sprintf(
			"Secret %q has different values in the keys %q and %q", secret.Name, keyKubeconfig, keyValue)}
	case hasA:
		return keyKubeconfig, nil
	case hasB:
		return keyValue, nil
	default:
		return "", &credentials.InvalidError{Reason: credentials.ReasonEmpty, Message: fmt.Sprintf(
			"Secret %q has neither the key %q nor %q", secret.Name, keyKubeconfig, keyValue)}
	}
}

// Watches triggers on every change of the metadata of a Secret. No predicate filters by the enrolment label: an update
// that removes it must pass, and Describe decides.
func (s *Source) Watches(hub cluster.Cluster) ([]source.TypedSource[connection.Key], error) {
	metadata := s.metadata
	if metadata == nil {
		metadata = hub.GetCache()
	}
	return []source.TypedSource[connection.Key]{
		source.TypedKind(metadata, metadataOfSecret(), handler.TypedEnqueueRequestsFromMapFunc(
			func(_ context.Context, m *metav1.PartialObjectMetadata) []connection.Key {
				return []connection.Key{connection.NewKey(SourceName, client.ObjectKeyFromObject(m))}
			})),
	}, nil
}

func metadataOfSecret() *metav1.PartialObjectMetadata {
	m := &metav1.PartialObjectMetadata{}
	m.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Secret"))
	return m
}
