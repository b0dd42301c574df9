// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package capi

import (
	"context"
	"errors"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/source"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/providers/connection"
	"github.com/masthead-dev/masthead/pkg/providers/credentials"
)

// SourceName is the first part of the names of clusters that come from Cluster API.
const SourceName = "capi"

// The contract of Cluster API for the Secret with a Cluster's kubeconfig.
const (
	kubeconfigSecretSuffix = "-kubeconfig" //nolint:gosec // A part of a name, not a credential.
	kubeconfigSecretKey    = "value"
)

// Options of a Source.
type Options struct {
	// Cached reads Clusters from the hub's cache. Required.
	Cached client.Reader
	// Live reads single Secrets from the hub's API server. Required.
	Live client.Reader
	// SecretMetadata is a cache of the metadata of Secrets. Default: the hub's cache. The hub's cache allows one selector
	// for Secrets; a separate cache lets each source use its own. The caller must start it.
	SecretMetadata cache.Cache
	// Imports reads ClusterImports from the hub's cache, to distinguish the pause that an import sets on its Cluster from
	// a user's. Nil means that ClusterImports are not managed: every pause is a user's.
	Imports client.Reader
}

// Source enrols labelled Clusters of Cluster API.
type Source struct {
	clusters client.Reader
	secrets  client.Reader
	live     client.Reader
	metadata cache.Cache
	imports  client.Reader
}

var _ connection.Source = &Source{}

// New returns a Source.
func New(o Options) (*Source, error) {
	if o.Cached == nil || o.Live == nil {
		return nil, errors.New("a cached and a live reader of the hub are required")
	}
	s := &Source{clusters: o.Cached, secrets: o.Cached, live: o.Live, metadata: o.SecretMetadata, imports: o.Imports}
	if o.SecretMetadata != nil {
		s.secrets = o.SecretMetadata
	}
	return s, nil
}

// Name returns SourceName.
func (s *Source) Name() string { return SourceName }

// Describe returns the enrolment of a Cluster and its Secret's metadata.
func (s *Source) Describe(ctx context.Context, nn types.NamespacedName) (*connection.Enrolment, error) {
	c := &clusterv1.Cluster{}
	if err := s.clusters.Get(ctx, nn, c); err != nil {
		if apierrors.IsNotFound(err) {
			return nil, connection.ErrNotEnrolled
		}
		return nil, fmt.Errorf("cannot get Cluster %q: %w", nn, err)
	}
	if _, ok := connection.EnrolledClass(c.Labels); !ok {
		return nil, connection.ErrNotEnrolled
	}
	secret := &metav1.PartialObjectMetadata{}
	secret.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Secret"))
	switch err := s.secrets.Get(ctx, secretName(nn), secret); {
	case apierrors.IsNotFound(err):
		secret = nil
	case err != nil:
		return nil, fmt.Errorf("cannot get the metadata of Secret %q: %w", secretName(nn), err)
	}
	imported, err := s.pausedByImport(ctx, c)
	if err != nil {
		return nil, err
	}
	e := describe(c, secret)
	if _, byUser := c.Annotations[clusterv1.PausedAnnotation]; imported && !byUser {
		e.Paused = false
	}
	return e, nil
}

// pausedByImport reports whether spec.paused of the Cluster was set by its ClusterImport: the Cluster carries the UID
// of an existing ClusterImport of its own name and namespace. Anyone can set the annotation, but gains only what an
// unpaused Cluster has anyway. The annotation that pauses a Cluster is always a user's.
func (s *Source) pausedByImport(ctx context.Context, c *clusterv1.Cluster) (bool, error) {
	uid := c.Annotations[fleetv1alpha1.ImportPausedAnnotation]
	if s.imports == nil || uid == "" || uid != c.Labels[fleetv1alpha1.ImportUIDLabel] {
		return false, nil
	}
	imp := &fleetv1alpha1.ClusterImport{}
	if err := s.imports.Get(ctx, client.ObjectKeyFromObject(c), imp); err != nil {
		if apierrors.IsNotFound(err) {
			return false, nil
		}
		return false, fmt.Errorf("cannot get ClusterImport %q: %w", client.ObjectKeyFromObject(c), err)
	}
	return string(imp.UID) == uid, nil
}

// Kubeconfig reads the Secret of the Cluster.
func (s *Source) Kubeconfig(ctx context.Context, e *connection.Enrolment) (connection.Kubeconfig, error) {
	nn := secretName(types.NamespacedName{Namespace: e.Object.Namespace, Name: e.Object.Name})
	secret, err := connection.CredentialsSecret(ctx, s.live, nn)
	if err != nil {
		return connection.Kubeconfig{}, err
	}
	data, err := parseKubeconfig(secret, e.Object.Name)
	if err != nil {
		return connection.Kubeconfig{}, err
	}
	return connection.Kubeconfig{
		Data: data, SecretKey: connection.SecretKey{Namespace: nn.Namespace, Name: nn.Name, Key: kubeconfigSecretKey},
	}, nil
}

// Watches triggers on every change of a Cluster, and of the metadata of a Secret with a Cluster's label and name. No
// predicate filters by the enrolment label: an update that removes it must pass, and Describe decides.
func (s *Source) Watches(hub cluster.Cluster) ([]source.TypedSource[connection.Key], error) {
	metadata := s.metadata
	if metadata == nil {
		metadata = hub.GetCache()
	}
	secret := &metav1.PartialObjectMetadata{}
	secret.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Secret"))
	return []source.TypedSource[connection.Key]{
		source.TypedKind(hub.GetCache(), &clusterv1.Cluster{}, handler.TypedEnqueueRequestsFromMapFunc(
			func(_ context.Context, c *clusterv1.Cluster) []connection.Key {
				return []connection.Key{connection.NewKey(SourceName, client.ObjectKeyFromObject(c))}
			})),
		source.TypedKind(metadata, secret, handler.TypedEnqueueRequestsFromMapFunc(
			func(_ context.Context, m *metav1.PartialObjectMetadata) []connection.Key { return keysOfSecret(m) })),
	}, nil
}

// keysOfSecret maps the kubeconfig Secret of a Cluster to the Cluster. The Secret's name decides, and the label must
// match: CAPI sets the label on many other Secrets.
func keysOfSecret(secret *metav1.PartialObjectMetadata) []connection.Key {
	name, ok := strings.CutSuffix(secret.Name, kubeconfigSecretSuffix)
	if !ok || name == "" || secret.Labels[clusterv1.ClusterNameLabel] != name {
		return nil
	}
	return []connection.Key{{Source: SourceName, Namespace: secret.Namespace, Name: name}}
}

// IsKubeconfig reports whether a Secret of that name may hold the kubeconfig of a Cluster.
func IsKubeconfig(name string) bool { return strings.HasSuffix(name, kubeconfigSecretSuffix) }

func secretName(nn types.NamespacedName) types.NamespacedName {
	return types.NamespacedName{Namespace: nn.Namespace, Name: nn.Name + kubeconfigSecretSuffix}
}

// describe returns the enrolment of a Cluster and its Secret's metadata, which is nil if there is none.
func describe(c *clusterv1.Cluster, secret *metav1.PartialObjectMetadata) *connection.Enrolment {
	class, _ := connection.EnrolledClass(c.Labels)
	_, paused := c.Annotations[clusterv1.PausedAnnotation]
	e := &connection.Enrolment{
		Object: connection.ObjectReference{
			GroupVersionKind: clusterv1.GroupVersion.WithKind("Cluster"),
			Namespace:        c.Namespace, Name: c.Name, UID: c.UID, CreationTimestamp: c.CreationTimestamp,
		},
		Class:      class,
		Identifier: c.Annotations[fleetv1alpha1.ClusterIdentifierAnnotation],

		TakeOverFrom: c.Annotations[fleetv1alpha1.TakeOverFromAnnotation],

		Paused:   paused || ptr.Deref(c.Spec.Paused, false),
		Deleting: !c.DeletionTimestamp.IsZero(),
		Ready:    true,
		Secret: fmt.Sprintf("Secret %q with the label %s=%s in the namespace %q",
			secretName(client.ObjectKeyFromObject(c)).Name, clusterv1.ClusterNameLabel, c.Name, c.Namespace),
	}
	if c.Spec.ControlPlaneEndpoint.IsValid() {
		e.Endpoint = c.Spec.ControlPlaneEndpoint.String()
	}
	if secret != nil && secret.Labels[clusterv1.ClusterNameLabel] == c.Name {
		e.CredentialsVersion = connection.CredentialsVersion(secret)
	}
	if message := notReady(c); message != "" {
		e.Ready, e.NotReadyReason, e.NotReadyMessage = false, fleetv1alpha1.ReasonNotReady, message
	}
	return e
}

// notReady returns why the Cluster is not expected to respond, or nothing. Cluster API reports the initialization of
// control planes that it knows. For one that is managed elsewhere, without a Cluster API object, an endpoint and
// provisioned infrastructure are the only requirements.
func notReady(c *clusterv1.Cluster) string {
	if ptr.Deref(c.Status.Initialization.ControlPlaneInitialized, false) {
		return ""
	}
	if c.Spec.ControlPlaneRef.IsDefined() {
		return "Cluster API has not reported yet that the control plane is initialized"
	}
	if !c.Spec.ControlPlaneEndpoint.IsValid() {
		return "The Cluster has neither an initialized control plane nor a control plane endpoint yet"
	}
	if !ptr.Deref(c.Status.Initialization.InfrastructureProvisioned, false) {
		return "Cluster API has not reported yet that the infrastructure is provisioned"
	}
	return ""
}

// parseKubeconfig returns the kubeconfig in the Secret of the Cluster of that name. The Secret must be labelled for the
// Cluster: one that only has the right name may be anything, for example a ServiceAccount token.
func parseKubeconfig(secret *corev1.Secret, clusterName string) ([]byte, error) {
	if got := secret.Labels[clusterv1.ClusterNameLabel]; got != clusterName {
		return nil, &credentials.InvalidError{Reason: credentials.ReasonNotOurs, Message: fmt.Sprintf(
			"Secret %q does not carry the label %s=%s", secret.Name, clusterv1.ClusterNameLabel, clusterName)}
	}
	switch secret.Type {
	case clusterv1.ClusterSecretType, corev1.SecretTypeOpaque, "":
	default:
		return nil, &credentials.InvalidError{Reason: credentials.ReasonNotOurs, Message: fmt.Sprintf(
			"Secret %q has the type %q, which is neither %s nor %s", secret.Name, secret.Type, clusterv1.ClusterSecretType, corev1.SecretTypeOpaque)}
	}
	kubeconfig, ok := secret.Data[kubeconfigSecretKey]
	if !ok {
		return nil, &credentials.InvalidError{Reason: credentials.ReasonEmpty, Message: fmt.Sprintf(
			"Secret %q has no key %q", secret.Name, kubeconfigSecretKey)}
	}
	return kubeconfig, nil
}
