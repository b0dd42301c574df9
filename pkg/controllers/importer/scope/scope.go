// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package scope

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/condition"
	"github.com/masthead-dev/masthead/pkg/controllers/importer/ownership"
	"github.com/masthead-dev/masthead/pkg/reflection"
)

// Scope is one pass over one import: the results of the steps, for later steps and for the status.
type Scope struct {
	Import *fleetv1alpha1.ClusterImport
	Wanted reflection.Import

	// Frozen means that managed resources and reflections are neither created nor changed.
	Frozen bool
	// Reflected means that the pass completed the reflection.
	Reflected bool
	// ConfigAllows says which namespaces may use the provider configuration; nil before it was read.
	ConfigAllows func(namespace string) bool

	// Served are the kinds of managed resources that the hub serves.
	Served reflection.ServedVersions
	// Schemas of the kinds that are reflected.
	Schemas reflection.Schemas
	// Managed are the managed resources of the import that are there.
	Managed []*unstructured.Unstructured
	// Strangers have the label of the import but do not belong to it.
	Strangers map[ObjectKey]bool
	// WantedManaged and wantedReflected are the objects that are wanted.
	WantedManaged, WantedReflected map[ObjectKey]bool
	// Skipped are the node pools that are not reflected, because a foreign object has one of their names, or the hub
	// refuses them.
	Skipped map[string]bool
	// Outcomes are those of the reflections: of this pass, or of the last one that came to them.
	Outcomes   map[ObjectKey]Outcome
	Facts      *reflection.Facts
	Reflection reflection.Reflection
	// KubeconfigNow is what the Secret holds; nil if there is none.
	KubeconfigNow []byte
	Expires       time.Time
	// Account is the ServiceAccount of the imported cluster whose token that is; nil for the credentials of the source.
	Account *fleetv1alpha1.ServiceAccountReference
	// SourceFails says why the source gives no credentials to request the next token with; "" if it does.
	SourceFails string

	Conditions []metav1.Condition
	References []fleetv1alpha1.ImportReference
	Lossy      []reflection.Lossy
	again      time.Duration
	// Removed are the kinds of which the import has no objects left, and emptied means that it has none at all: it is
	// deleted, or may no longer use its provider configuration.
	Removed map[schema.GroupKind]bool
	Emptied bool
	// Waits means that the import found no place, and is woken when it has one.
	Waits bool
	// Gone means that the import itself is gone.
	Gone bool
}

// ObjectKey names an object, regardless of its version.
type ObjectKey struct {
	schema.GroupKind
	namespace, name string
}

// NewObjectKey is the key of an object.
func NewObjectKey(o client.Object) ObjectKey {
	return ObjectKey{o.GetObjectKind().GroupVersionKind().GroupKind(), o.GetNamespace(), o.GetName()}
}

// New returns the Scope of a pass that has found nothing yet. It has its own copy of the import.
func New(imp *fleetv1alpha1.ClusterImport) *Scope {
	imp = imp.DeepCopy()
	return &Scope{
		Import: imp, Wanted: ownership.WantedImport(imp),
		WantedManaged: map[ObjectKey]bool{}, WantedReflected: map[ObjectKey]bool{}, Strangers: map[ObjectKey]bool{}, Skipped: map[string]bool{},
		Removed: map[schema.GroupKind]bool{}, Outcomes: map[ObjectKey]Outcome{},
	}
}

// Key names the import.
func (p *Scope) Key() types.NamespacedName { return client.ObjectKeyFromObject(p.Import) }

// RequeueSoon requeues the import before the regular time.
func (p *Scope) RequeueSoon(after time.Duration) {
	if p.again == 0 || after < p.again {
		p.again = max(after, time.Second)
	}
}

// Requeue is the requeue delay of the import.
func (p *Scope) Requeue() time.Duration { return cmp.Or(p.again, Resync) }

// Set sets a condition, replacing an earlier one of the same type.
func (p *Scope) Set(c metav1.Condition) {
	c.Message = BoundedText(c.Message)
	p.Conditions = slices.DeleteFunc(p.Conditions, func(other metav1.Condition) bool { return other.Type == c.Type })
	p.Conditions = append(p.Conditions, c)
}

// Succeed sets a condition to True.
func (p *Scope) Succeed(conditionType, reason, message string) {
	p.Set(metav1.Condition{Type: conditionType, Status: metav1.ConditionTrue, Reason: reason, Message: message})
}

// Fail sets a condition to False.
func (p *Scope) Fail(conditionType, reason, format string, args ...any) {
	p.Set(metav1.Condition{Type: conditionType, Status: metav1.ConditionFalse, Reason: reason, Message: fmt.Sprintf(format, args...)})
}

// Refer adds an object to the status, once.
func (p *Scope) Refer(o client.Object) {
	apiVersion, kind := o.GetObjectKind().GroupVersionKind().ToAPIVersionAndKind()
	ref := fleetv1alpha1.ImportReference{APIVersion: apiVersion, Kind: kind, Namespace: o.GetNamespace(), Name: o.GetName()}
	if !slices.Contains(p.References, ref) {
		p.References = append(p.References, ref)
	}
}

// Skip excludes a node pool, one of whose objects cannot be written, from the reflection: nothing depends on it, and it
// must not block the rest.
func (p *Scope) Skip(pool string, o client.Object, reason string) {
	kind, name := o.GetObjectKind().GroupVersionKind().Kind, o.GetName()
	p.Skipped[pool] = true
	p.References = slices.DeleteFunc(
		p.References,
		func(ref fleetv1alpha1.ImportReference) bool { return ref.Kind == kind && ref.Name == name },
	)
	p.Lossy = append(p.Lossy, reflection.Lossy{
		Object: kind + "/" + name, Field: "metadata.name", Observed: pool, Reason: "The node pool is not reflected. " + reason,
	})
}

// Stop is a problem that ends the steps: the following ones cannot be done.
func Stop(conditionType, reason, format string, args ...any) *condition.Error {
	return &condition.Error{Type: conditionType, Reason: reason, Message: fmt.Sprintf(format, args...)}
}

// Report sets the condition of a problem, and requeues the import when the problem says. AlreadyManaged is the one
// whose problem is that it is True.
func (p *Scope) Report(problem *condition.Error) {
	status := metav1.ConditionFalse
	if problem.Type == fleetv1alpha1.ConditionAlreadyManaged {
		status = metav1.ConditionTrue
	}
	p.Set(metav1.Condition{Type: problem.Type, Status: status, Reason: problem.Reason, Message: problem.Message})
	if problem.RetryAfter > 0 {
		p.RequeueSoon(problem.RetryAfter)
	}
}

// ChangeFinalizer adds the finalizer to an import or removes it, and reports whether that changed anything.
func ChangeFinalizer(imp *fleetv1alpha1.ClusterImport, want bool) bool {
	if want {
		return controllerutil.AddFinalizer(imp, fleetv1alpha1.ImportFinalizer)
	}
	return controllerutil.RemoveFinalizer(imp, fleetv1alpha1.ImportFinalizer)
}
