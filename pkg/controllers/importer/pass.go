// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package importer

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/reflection"
)

// pass is one look at one import: what the steps found, for those that follow and for the status.
type pass struct {
	imp    *fleetv1alpha1.ClusterImport
	wanted reflection.Import

	// frozen means that no managed resource and no reflection is created or changed.
	frozen bool
	// reflected means that the pass came to the end of the reflection.
	reflected bool
	// configAllows says which namespaces may use the provider configuration; nil before it was read.
	configAllows func(namespace string) bool

	// served are the kinds of managed resources that the hub serves.
	served reflection.ServedVersions
	// schemas of the kinds that are reflected.
	schemas reflection.Schemas
	// managed are the managed resources of the import that are there.
	managed []*unstructured.Unstructured
	// strangers bear the label of the import and are not of it.
	strangers map[objectKey]bool
	// wantedManaged and wantedReflected are the objects that are wanted.
	wantedManaged, wantedReflected map[objectKey]bool
	// skipped are the node pools that are not reflected, because an object of somebody else has the name of one of theirs.
	skipped    map[string]bool
	facts      *reflection.Facts
	reflection reflection.Reflection
	// kubeconfigNow is what the Secret holds; nil if there is none.
	kubeconfigNow []byte
	expires       time.Time
	// account is the ServiceAccount of the imported cluster whose token that is; nil for the credentials of the source.
	account *fleetv1alpha1.ServiceAccountReference
	// sourceFails says why the source gives nothing to ask for the next token with; "" if it does.
	sourceFails string

	conditions []metav1.Condition
	references []fleetv1alpha1.ImportReference
	lossy      []reflection.Lossy
	again      time.Duration
	// removed are the kinds of which the import has nothing any more, and emptied means that it has nothing at all: it is
	// deleted, or may no longer use its provider configuration.
	removed map[schema.GroupKind]bool
	emptied bool
	// waits means that the import is woken when it may ask what it did not find a place for.
	waits bool
	// gone means that the import itself is gone.
	gone bool
}

// objectKey names an object, whatever its version.
type objectKey struct {
	schema.GroupKind
	namespace, name string
}

func keyOf(o client.Object) objectKey {
	return objectKey{o.GetObjectKind().GroupVersionKind().GroupKind(), o.GetNamespace(), o.GetName()}
}

func newPass(imp *fleetv1alpha1.ClusterImport) *pass {
	imp = imp.DeepCopy()
	return &pass{
		imp: imp, wanted: wantedImport(imp),
		wantedManaged: map[objectKey]bool{}, wantedReflected: map[objectKey]bool{}, strangers: map[objectKey]bool{}, skipped: map[string]bool{},
		removed: map[schema.GroupKind]bool{},
	}
}

func (p *pass) key() types.NamespacedName { return client.ObjectKeyFromObject(p.imp) }

// requeueSoon has the import looked at again before the regular time.
func (p *pass) requeueSoon(after time.Duration) {
	if p.again == 0 || after < p.again {
		p.again = max(after, time.Second)
	}
}

func (p *pass) requeue() time.Duration { return cmp.Or(p.again, resync) }

// set sets a condition of this pass.
func (p *pass) set(c metav1.Condition) {
	c.Message = text(c.Message)
	p.conditions = slices.DeleteFunc(p.conditions, func(other metav1.Condition) bool { return other.Type == c.Type })
	p.conditions = append(p.conditions, c)
}

func (p *pass) pass(condition, reason, message string) {
	p.set(metav1.Condition{Type: condition, Status: metav1.ConditionTrue, Reason: reason, Message: message})
}

func (p *pass) fail(condition, reason, format string, args ...any) {
	p.set(metav1.Condition{Type: condition, Status: metav1.ConditionFalse, Reason: reason, Message: fmt.Sprintf(format, args...)})
}

func (p *pass) refer(o client.Object) {
	apiVersion, kind := o.GetObjectKind().GroupVersionKind().ToAPIVersionAndKind()
	ref := fleetv1alpha1.ImportReference{APIVersion: apiVersion, Kind: kind, Namespace: o.GetNamespace(), Name: o.GetName()}
	if !slices.Contains(p.references, ref) {
		p.references = append(p.references, ref)
	}
}

// skip has a node pool not be reflected: nothing depends on it, and one name that is taken must not hold up the rest.
func (p *pass) skip(o reflection.Object) {
	p.skipped[o.Pool] = true
	p.references = slices.DeleteFunc(p.references, func(ref fleetv1alpha1.ImportReference) bool {
		return ref.Kind == o.Object.GetKind() && ref.Name == o.Object.GetName()
	})
	p.lossy = append(p.lossy, reflection.Lossy{
		Object: o.Object.GetKind() + "/" + o.Object.GetName(), Field: "metadata.name", Observed: o.Pool,
		Reason: "The node pool is not reflected. There is an object of this name that the import did not make; it is left alone",
	})
}

// stopError ends a pass with a condition: what follows cannot be done.
type stopError struct {
	condition metav1.Condition
	// withdrawn means that the kubeconfig is made with what may no longer be used.
	withdrawn bool
}

func (e *stopError) Error() string { return e.condition.Message }

func stop(condition, reason, format string, args ...any) error {
	status := metav1.ConditionFalse
	if condition == fleetv1alpha1.ConditionAlreadyManaged {
		status = metav1.ConditionTrue
	}
	return &stopError{condition: metav1.Condition{
		Type: condition, Status: status, Reason: reason, Message: fmt.Sprintf(format, args...),
	}}
}

func changeFinalizer(imp *fleetv1alpha1.ClusterImport, want bool) bool {
	if want {
		return controllerutil.AddFinalizer(imp, fleetv1alpha1.ImportFinalizer)
	}
	return controllerutil.RemoveFinalizer(imp, fleetv1alpha1.ImportFinalizer)
}

// marks are the labels on everything that an import makes.
func marks(imp *fleetv1alpha1.ClusterImport) map[string]string {
	return map[string]string{
		fleetv1alpha1.ImportUIDLabel: string(imp.UID), fleetv1alpha1.ImportNameLabel: imp.Name, fleetv1alpha1.ImportNamespaceLabel: imp.Namespace,
	}
}

// isOurs says whether an object bears the label of this import. It is enough for an object of the very name that the
// import gives. What was found by its label has to pass Reconciler.own as well.
func (p *pass) isOurs(o client.Object) bool {
	return o.GetLabels()[fleetv1alpha1.ImportUIDLabel] == string(p.imp.UID)
}

// connectionSecretName is the Secret that a Crossplane provider is asked to write connection details into.
func connectionSecretName(imp *fleetv1alpha1.ClusterImport) string {
	return imp.Name + "-import-connection"
}

// wantedImport is the import in the terms of pkg/reflection.
func wantedImport(imp *fleetv1alpha1.ClusterImport) reflection.Import {
	s := imp.Spec
	w := reflection.Import{
		Namespace: imp.Namespace, Name: imp.Name, UID: imp.UID,
		Cloud:             reflection.Cloud(s.Cloud()),
		ProviderConfig:    reflection.ProviderConfig{Kind: cmp.Or(s.ProviderConfigRef.Kind, "ProviderConfig"), Name: s.ProviderConfigRef.Name},
		Labels:            marks(imp),
		ClusterLabels:     map[string]string{fleetv1alpha1.ImportedLabel: "true"},
		NodePools:         slices.Clone(s.NodePools.Names),
		DiscoverNodePools: s.NodePools.Mode != fleetv1alpha1.NodePoolsModeList,
		StrictPause:       s.Pause == fleetv1alpha1.ImportPauseStrict,
	}
	if s.Enroll != "" {
		w.ClusterLabels[fleetv1alpha1.EnrollLabel] = s.Enroll
	}
	switch source := s.KubeconfigSource(); {
	case source == fleetv1alpha1.KubeconfigSourceProvider && s.GKE == nil,
		source == fleetv1alpha1.KubeconfigSourceAzureServicePrincipal, source == fleetv1alpha1.KubeconfigSourceToken && s.AKS != nil:
		w.ConnectionSecretName = connectionSecretName(imp)
	}
	switch {
	case s.EKS != nil:
		w.Region, w.ClusterName = s.EKS.Region, s.EKS.ClusterName
		w.NodePools = append(w.NodePools, s.EKS.NodeGroupNames...)
	case s.AKS != nil:
		w.ResourceGroupName, w.ClusterName = s.AKS.ResourceGroupName, s.AKS.ClusterName
	case s.GKE != nil:
		w.Location, w.ClusterName = s.GKE.Location, s.GKE.ClusterName
	}
	slices.Sort(w.NodePools)
	w.NodePools = slices.Compact(w.NodePools)
	if s.Subnets != nil {
		w.PublicSubnetTag = s.Subnets.PublicTag
		for _, o := range s.Subnets.Overrides {
			hint := reflection.SubnetHint{ID: o.ID, RouteTableID: o.RouteTableID}
			if o.Type != "" {
				public := o.Type == fleetv1alpha1.SubnetTypePublic
				hint.Public = &public
			}
			w.Subnets = append(w.Subnets, hint)
		}
	}
	return w
}
