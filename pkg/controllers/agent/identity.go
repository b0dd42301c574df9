// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"errors"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/client"
	mcr "sigs.k8s.io/multicluster-runtime/pkg/multicluster"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
)

// Whose rights are used in the hub for a claim is decided once, when its reconcile begins, and goes with the context. The hub's
// API can be used with such a context only: a read or a write for which nobody has decided fails, rather than be done with the
// manager's rights.

// identityKey names an identity: a ServiceAccount of the hub, or a Secret of a workload cluster with credentials. The zero
// value is the manager itself.
type identityKey struct {
	serviceAccount types.NamespacedName

	// cluster is the one that holds the Secret.
	cluster mcr.ClusterName
	secret  types.NamespacedName
}

// mark is the identity as an object of the hub names its creator.
func (k identityKey) mark() string {
	switch {
	case k.serviceAccount.Name != "":
		return "serviceaccount/" + k.serviceAccount.String()
	case k.secret.Name != "":
		return markOfSecret + k.secret.String()
	}
	return "manager"
}

const markOfSecret = "secret/"

// creatorOf is the identity that an object of the hub names as its creator, if that is one that the owner of the claim's
// namespace gave.
func creatorOf(obj metav1.Object, cluster mcr.ClusterName, namespace string) (identityKey, bool) {
	name, ok := strings.CutPrefix(obj.GetAnnotations()[fleetv1alpha1.CreatedByAnnotation], markOfSecret+namespace+"/")
	if !ok || namespace == "" || len(validation.IsDNS1123Subdomain(name)) > 0 {
		return identityKey{}, false
	}
	return identityKey{cluster: cluster, secret: types.NamespacedName{Namespace: namespace, Name: name}}, true
}

// isManager is whether the identity is the manager itself.
func (k identityKey) isManager() bool { return k == identityKey{} }

// classIdentity is the identity that a class gives to the claims of a cluster.
func classIdentity(agent fleetv1alpha1.AgentSpec, cluster mcr.ClusterName) (identityKey, *problem) {
	id := agent.Identity
	switch {
	case id == nil:
		return identityKey{}, nil
	case (id.ServiceAccountRef != nil) == (id.CredentialsSecretName != ""):
		return identityKey{}, &problem{
			reason:  ReasonInvalidClass,
			message: "The EnrollmentClass of this cluster must have exactly one of spec.agent.identity.serviceAccountRef and credentialsSecretName.",
		}
	case id.ServiceAccountRef != nil:
		return identityKey{serviceAccount: types.NamespacedName{Namespace: id.ServiceAccountRef.Namespace, Name: id.ServiceAccountRef.Name}}, nil
	}
	return identityKey{
		cluster: cluster, secret: types.NamespacedName{Namespace: fleetv1alpha1.AgentNamespace, Name: id.CredentialsSecretName},
	}, nil
}

// namespaceIdentity is the identity that the owner of a namespace of a workload cluster gives to its claims, if he does.
func namespaceIdentity(annotations map[string]string, cluster mcr.ClusterName, namespace string) (identityKey, bool, *problem) {
	name, ok := annotations[fleetv1alpha1.CredentialsSecretNameAnnotation]
	if !ok {
		return identityKey{}, false, nil
	}
	if len(validation.IsDNS1123Subdomain(name)) > 0 {
		return identityKey{}, true, &problem{
			reason: ReasonCredentialsInvalid,
			message: fmt.Sprintf("The annotation %s of the namespace %q is not the name of a Secret.",
				fleetv1alpha1.CredentialsSecretNameAnnotation, namespace),
		}
	}
	return identityKey{cluster: cluster, secret: types.NamespacedName{Namespace: namespace, Name: name}}, true, nil
}

// authenticate decides whose rights in the hub are used for a claim. What it returns is for every read and write there; the
// outcome is why there is nobody.
//
// What was created with credentials of the claim's namespace is deleted with these, whatever the namespace says by now: their
// Role in the hub is the limit, and who owns the namespace could lift it by removing the annotation. With a namespace that is
// deleted, its Secrets go before its claims. Then, and only then, what was read from them last is followed by the class's
// identity: a namespace is deleted by whoever gives it out, and it would never end.
func (r *requirementReconciler) authenticate(ctx context.Context, s *scope) (context.Context, *outcome, error) {
	if s.class == nil {
		// Nobody says whose rights to use. Nothing is pushed or deleted then: all that can happen is that an object is given
		// up, which can be undone (deletionPolicy).
		return r.identities.manager.in(ctx), nil, nil
	}
	if s.class.Spec.Agent.Mode == fleetv1alpha1.AgentModeDisabled {
		return ctx, nil, nil // Nothing is done in the hub.
	}
	going := s.vanished || s.claim.GetDeletionTimestamp() != nil
	pairing, o, err := r.pairingOf(ctx, s)
	if err != nil || o != nil && !going {
		return ctx, o, err
	}
	s.pairing = pairing
	if going && !s.vanished && !s.workload.bearsFinalizer(s.claim) {
		return ctx, nil, nil // There is nothing to do in the hub.
	}
	access, p, err := r.identityOf(ctx, s, going)
	if err != nil {
		return ctx, nil, err
	}
	if p != nil {
		return ctx, &outcome{silent: s.vanished, problem: p, retryAfter: r.identities.retryAfter()}, nil
	}
	return access.in(ctx), nil, nil
}

// identityOf returns the hub with the rights that are used for a claim.
func (r *requirementReconciler) identityOf(ctx context.Context, s *scope, going bool) (*hubAccess, *problem, error) {
	if creator, ok := r.creator(s); going && ok {
		return r.creatorAccess(ctx, s, creator)
	}
	var annotations map[string]string
	if s.pairing != nil {
		annotations = s.pairing.annotations
	}
	key, given, p := namespaceIdentity(annotations, s.ClusterName, s.Namespace)
	if given && p == nil {
		access, problem, err := r.identities.use(ctx, s.workload.reader, key)
		if access != nil {
			return access, nil, nil
		}
		if !going || err != nil {
			return nil, problem, err
		}
		if last := r.identities.last(key); last != nil {
			return last, nil, nil
		}
	}
	if given && !going {
		return nil, p, nil
	}
	return r.classAccess(ctx, s)
}

// classAccess is the hub with the rights of the class's identity.
func (r *requirementReconciler) classAccess(ctx context.Context, s *scope) (*hubAccess, *problem, error) {
	key, p := classIdentity(s.class.Spec.Agent, s.ClusterName)
	if p != nil {
		return nil, p, nil
	}
	return r.identities.use(ctx, s.workload.reader, key)
}

// creator is the identity of the claim's namespace that created the claim's object, if one did and the watch shows it.
func (r *requirementReconciler) creator(s *scope) (identityKey, bool) {
	places := r.recordedPlaces(s)
	if s.pairing != nil {
		if target, p := s.pairing.target(); p == nil {
			places = append(places, hubKey{kind: s.Kind, NamespacedName: types.NamespacedName{Namespace: target, Name: s.Name}})
		}
	}
	for _, place := range places {
		if obj, err := r.hub.watcher.Get(place.kind, place.NamespacedName); err == nil && s.owns(obj) {
			return creatorOf(obj, s.ClusterName, s.Namespace)
		}
	}
	return identityKey{}, false
}

// creatorAccess is the hub with the rights of the identity that created the claim's object.
func (r *requirementReconciler) creatorAccess(ctx context.Context, s *scope, creator identityKey) (*hubAccess, *problem, error) {
	access, p, err := r.identities.use(ctx, s.workload.reader, creator)
	if access != nil || err != nil {
		return access, nil, err
	}
	if last := r.identities.last(creator); last != nil {
		return last, nil, nil
	}
	if s.namespace == nil || s.namespace.GetDeletionTimestamp() != nil {
		return r.classAccess(ctx, s)
	}
	said := *p
	said.message += fmt.Sprintf(" The object in the hub was created by %s, and is deleted with the same rights.", creator)
	return nil, &said, nil
}

// disclosable is what may be told about what was seen at a place of the hub that belongs to somebody else. The watch that saw
// it is the manager's. So with another identity it is told only if that identity may read there: which names are taken in a
// namespace, and by whom, is not for everybody who can name the namespace.
//
// Without that right, the claim is told what it would be told about a name that is free, in the same words and with the same
// finalizer: the hub is asked whether it would accept it. Only who may create there learns that it cannot.
func (r *requirementReconciler) disclosable(ctx context.Context, s *scope, key hubKey, o outcome) (outcome, error) {
	if o.problem == nil || asManager(ctx) || o.problem.reason != ReasonConflict && o.problem.reason != ReasonNamespaceRecreated {
		return o, nil
	}
	_, unreadable := r.getHub(ctx, key)
	if unreadable == nil {
		return o, nil
	}
	p := problemOf(unreadable, "get", s.Kind.GroupResource().String(), key.Namespace)
	if p == nil {
		return outcome{}, unreadable
	}
	refused, err := r.rehearse(ctx, s, key)
	if refused == nil {
		if err != nil && !apierrors.IsConflict(err) {
			return outcome{}, err
		}
		return outcome{problem: p, retryAfter: slowRetry()}, nil
	}
	r.awaitNamespace(s, key.Namespace, refused)
	if o, err := r.finalize(ctx, s, nil); err != nil || o != nil {
		return deref(o), err
	}
	return *refused, nil
}

// hubAccess is the hub with the rights of one identity.
type hubAccess struct {
	reader client.Reader
	writer client.Writer
	key    identityKey
}

type accessKey struct{}

// in returns a context for what is done with the rights of the identity.
func (a *hubAccess) in(ctx context.Context) context.Context {
	return context.WithValue(ctx, accessKey{}, a)
}

// errNoIdentity is that nobody has decided whose rights to use.
var errNoIdentity = errors.New("it is not decided whose rights in the hub to use") //nolint:gochecknoglobals // A constant.

func accessOf(ctx context.Context) (*hubAccess, error) {
	if a, ok := ctx.Value(accessKey{}).(*hubAccess); ok {
		return a, nil
	}
	return nil, errNoIdentity
}

// asManager is whether a context is for what is done with the manager's own rights.
func asManager(ctx context.Context) bool {
	a, err := accessOf(ctx)
	return err == nil && a.key.isManager()
}

// refusal is an answer of the hub to somebody else than the manager.
type refusal struct {
	error

	key identityKey
}

// Unwrap is the answer.
func (r refusal) Unwrap() error { return r.error }

// do does something with the rights of the identity of a context.
func do(ctx context.Context, what func(*hubAccess) error) error {
	a, err := accessOf(ctx)
	if err != nil {
		return err
	}
	if err := what(a); err != nil {
		if a.key.isManager() {
			return err
		}
		return refusal{err, a.key}
	}
	return nil
}

// hubAPI is the hub, with the rights of the identity of the context.
type hubAPI struct{}

var (
	_ client.Reader = hubAPI{}
	_ client.Writer = hubAPI{}
)

// Get implements client.Reader.
func (hubAPI) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	return do(ctx, func(a *hubAccess) error { return a.reader.Get(ctx, key, obj, opts...) })
}

// List implements client.Reader.
func (hubAPI) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	return do(ctx, func(a *hubAccess) error { return a.reader.List(ctx, list, opts...) })
}

// Create implements client.Writer.
func (hubAPI) Create(ctx context.Context, obj client.Object, opts ...client.CreateOption) error {
	return do(ctx, func(a *hubAccess) error { return a.writer.Create(ctx, obj, opts...) })
}

// Update implements client.Writer.
func (hubAPI) Update(ctx context.Context, obj client.Object, opts ...client.UpdateOption) error {
	return do(ctx, func(a *hubAccess) error { return a.writer.Update(ctx, obj, opts...) })
}

// Patch implements client.Writer.
func (hubAPI) Patch(ctx context.Context, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
	return do(ctx, func(a *hubAccess) error { return a.writer.Patch(ctx, obj, patch, opts...) })
}

// Apply implements client.Writer.
func (hubAPI) Apply(ctx context.Context, obj runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
	return do(ctx, func(a *hubAccess) error { return a.writer.Apply(ctx, obj, opts...) })
}

// Delete implements client.Writer.
func (hubAPI) Delete(ctx context.Context, obj client.Object, opts ...client.DeleteOption) error {
	return do(ctx, func(a *hubAccess) error { return a.writer.Delete(ctx, obj, opts...) })
}

// DeleteAllOf implements client.Writer.
func (hubAPI) DeleteAllOf(ctx context.Context, obj client.Object, opts ...client.DeleteAllOfOption) error {
	return do(ctx, func(a *hubAccess) error { return a.writer.DeleteAllOf(ctx, obj, opts...) })
}
