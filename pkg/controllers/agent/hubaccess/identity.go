// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package hubaccess

import (
	"context"
	"errors"
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/client"
	mcr "sigs.k8s.io/multicluster-runtime/pkg/multicluster"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/condition"
)

// The identity used in the hub for a claim is decided once, when its reconcile begins, and carried in the context. The
// hub's API requires such a context: reads and writes without one fail, rather than use the manager's rights.

// Key identifies an identity: a ServiceAccount of the hub, or a Secret of a workload cluster with credentials. The zero
// value is the manager itself.
type Key struct {
	ServiceAccount types.NamespacedName

	// Cluster holds the Secret.
	Cluster mcr.ClusterName
	Secret  types.NamespacedName
}

// Mark returns the identity as the creator mark of an object in the hub.
func (k Key) Mark() string {
	switch {
	case k.ServiceAccount.Name != "":
		return "serviceaccount/" + k.ServiceAccount.String()
	case k.Secret.Name != "":
		return markOfSecret + k.Secret.String()
	}
	return "manager"
}

const markOfSecret = "secret/"

// ParseCreator returns the identity that an object of the hub names as its creator, if the owner of the claim's
// namespace provided it.
func ParseCreator(obj metav1.Object, cluster mcr.ClusterName, namespace string) (Key, bool) {
	name, ok := strings.CutPrefix(obj.GetAnnotations()[fleetv1alpha1.CreatedByAnnotation], markOfSecret+namespace+"/")
	if !ok || namespace == "" || len(validation.IsDNS1123Subdomain(name)) > 0 {
		return Key{}, false
	}
	return Key{Cluster: cluster, Secret: types.NamespacedName{Namespace: namespace, Name: name}}, true
}

// isManager reports whether the identity is the manager itself.
func (k Key) isManager() bool { return k == Key{} }

// ClassIdentity returns the identity that a class assigns to the claims of a cluster.
func ClassIdentity(agent fleetv1alpha1.AgentSpec, cluster mcr.ClusterName) (Key, error) {
	id := agent.Identity
	switch {
	case id == nil:
		return Key{}, nil
	case (id.ServiceAccountRef != nil) == (id.CredentialsSecretName != ""):
		return Key{}, &condition.Error{
			Reason:  fleetv1alpha1.ReasonInvalidClass,
			Message: "The EnrollmentClass of this cluster must have exactly one of spec.agent.identity.serviceAccountRef and credentialsSecretName.",
		}
	case id.ServiceAccountRef != nil:
		return Key{ServiceAccount: types.NamespacedName{Namespace: id.ServiceAccountRef.Namespace, Name: id.ServiceAccountRef.Name}}, nil
	}
	return Key{
		Cluster: cluster, Secret: types.NamespacedName{Namespace: fleetv1alpha1.AgentNamespace, Name: id.CredentialsSecretName},
	}, nil
}

// NamespaceIdentity returns the identity that the owner of a workload cluster's namespace assigns to its claims, if
// any.
func NamespaceIdentity(annotations map[string]string, cluster mcr.ClusterName, namespace string) (key Key, given bool, err error) {
	name, ok := annotations[fleetv1alpha1.CredentialsSecretNameAnnotation]
	if !ok {
		return Key{}, false, nil
	}
	if len(validation.IsDNS1123Subdomain(name)) > 0 {
		return Key{}, true, &condition.Error{
			Reason: fleetv1alpha1.ReasonCredentialsInvalid,
			Message: fmt.Sprintf("The annotation %s of the namespace %q is not the name of a Secret.",
				fleetv1alpha1.CredentialsSecretNameAnnotation, namespace),
		}
	}
	return Key{Cluster: cluster, Secret: types.NamespacedName{Namespace: namespace, Name: name}}, true, nil
}

// Access is the hub with the rights of one identity.
type Access struct {
	reader client.Reader
	writer client.Writer
	Key    Key
}

type accessKey struct{}

// In returns a context that uses the rights of the identity.
func (a *Access) In(ctx context.Context) context.Context {
	return context.WithValue(ctx, accessKey{}, a)
}

// ErrNoIdentity means that the context has no identity.
var ErrNoIdentity = errors.New("the context has no identity for the hub") //nolint:gochecknoglobals // A constant.

// FromContext returns the hub with the rights of a context's identity.
func FromContext(ctx context.Context) (*Access, error) {
	if a, ok := ctx.Value(accessKey{}).(*Access); ok {
		return a, nil
	}
	return nil, ErrNoIdentity
}

// AsManager reports whether a context uses the manager's own rights.
func AsManager(ctx context.Context) bool {
	a, err := FromContext(ctx)
	return err == nil && a.Key.isManager()
}

// do calls what with the access of the context's identity.
func do(ctx context.Context, what func(*Access) error) error {
	a, err := FromContext(ctx)
	if err != nil {
		return err
	}
	if err := what(a); err != nil {
		if a.Key.isManager() {
			return err
		}
		return RefusalError{Answer: err, Identity: a.Key.String()}
	}
	return nil
}

// API is the hub, with the rights of the context's identity.
type API struct{}

var (
	_ client.Reader = API{}
	_ client.Writer = API{}
)

// Get implements client.Reader.
func (API) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	return do(ctx, func(a *Access) error { return a.reader.Get(ctx, key, obj, opts...) })
}

// List implements client.Reader.
func (API) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	return do(ctx, func(a *Access) error { return a.reader.List(ctx, list, opts...) })
}

// Create implements client.Writer.
func (API) Create(ctx context.Context, obj client.Object, opts ...client.CreateOption) error {
	return do(ctx, func(a *Access) error { return a.writer.Create(ctx, obj, opts...) })
}

// Update implements client.Writer.
func (API) Update(ctx context.Context, obj client.Object, opts ...client.UpdateOption) error {
	return do(ctx, func(a *Access) error { return a.writer.Update(ctx, obj, opts...) })
}

// Patch implements client.Writer.
func (API) Patch(ctx context.Context, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
	return do(ctx, func(a *Access) error { return a.writer.Patch(ctx, obj, patch, opts...) })
}

// Apply implements client.Writer.
func (API) Apply(ctx context.Context, obj runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
	return do(ctx, func(a *Access) error { return a.writer.Apply(ctx, obj, opts...) })
}

// Delete implements client.Writer.
func (API) Delete(ctx context.Context, obj client.Object, opts ...client.DeleteOption) error {
	return do(ctx, func(a *Access) error { return a.writer.Delete(ctx, obj, opts...) })
}

// DeleteAllOf implements client.Writer.
func (API) DeleteAllOf(ctx context.Context, obj client.Object, opts ...client.DeleteAllOfOption) error {
	return do(ctx, func(a *Access) error { return a.writer.DeleteAllOf(ctx, obj, opts...) })
}
