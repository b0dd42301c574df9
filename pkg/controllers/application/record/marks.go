// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package record

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	appsv1alpha1 "github.com/masthead-dev/masthead/apis/apps/v1alpha1"
)

// A Mark is a property by which Applications discover an object, with the object's namespace. It is also the index key
// of the object's record.
type Mark string

// Kinds of marks.
const (
	markPartOf        = "part-of"
	markInstance      = "instance"
	markHelm          = "helm"
	markKustomization = "kustomization"
	markHelmRelease   = "helm-release"
	markArgo          = "argo"
	markObject        = "object"
)

// maxMarkValue bounds the length of a value in a mark: no name that an Application can ask for is longer.
const maxMarkValue = 512

// newMark is a mark of objects in a namespace, which is empty for cluster-scoped objects. Only the last value may
// contain slashes.
func newMark(what, namespace string, values ...string) Mark {
	return Mark(what + "/" + namespace + "/" + strings.Join(values, "/"))
}

// objectMark is the mark of a single object.
func objectMark(gk schema.GroupKind, key types.NamespacedName) Mark {
	return newMark(markObject, key.Namespace, gk.Group, gk.Kind, key.Name)
}

// marksOfObject are the marks that an object bears. Controllers copy labels and annotations of their own objects, and
// those of templates, to what they create: a Deployment to its Pods, a CronJob to its Jobs, a custom resource to both.
// On an object with a controller they count only where they cannot be a copy, in a tracking ID of Argo CD, or where an
// inventory tells copies apart.
func marksOfObject(gk schema.GroupKind, obj *unstructured.Unstructured, controlled bool) []Mark {
	labels, annotations := obj.GetLabels(), obj.GetAnnotations()
	key := types.NamespacedName{Namespace: obj.GetNamespace(), Name: obj.GetName()}
	marks := []Mark{objectMark(gk, key)}
	add := func(what string, values ...string) {
		long := func(v string) bool { return v == "" || len(v) > maxMarkValue }
		if !slices.ContainsFunc(values, long) {
			marks = append(marks, newMark(what, key.Namespace, values...))
		}
	}
	if !controlled {
		add(markPartOf, labels[appsv1alpha1.PartOfLabel])
		add(markInstance, labels[appsv1alpha1.InstanceLabel])
		add(markHelm, annotations[appsv1alpha1.HelmReleaseNamespaceAnnotation], annotations[appsv1alpha1.HelmReleaseNameAnnotation])
	}
	add(markKustomization, labels[appsv1alpha1.FluxKustomizationNamespaceLabel], labels[appsv1alpha1.FluxKustomizationNameLabel])
	add(markHelmRelease, labels[appsv1alpha1.FluxHelmReleaseNamespaceLabel], labels[appsv1alpha1.FluxHelmReleaseNameLabel])
	if _, tracked := annotations[appsv1alpha1.ArgoTrackingAnnotation]; tracked || !controlled {
		add(markArgo, argoApplication(gk, key, labels, annotations))
	}
	return marks
}

// argoApplication is the Application of Argo CD that applied an object; empty if none did. A tracking ID of another
// object was copied, as many controllers copy annotations to objects they create, and is ignored. The label is then
// ignored as well.
func argoApplication(gk schema.GroupKind, key types.NamespacedName, labels, annotations map[string]string) string {
	id, tracked := annotations[appsv1alpha1.ArgoTrackingAnnotation]
	if !tracked {
		return labels[appsv1alpha1.ArgoInstanceLabel]
	}
	parts := strings.SplitN(id, ":", 3) // Names of roles have colons.
	if len(parts) != 3 || parts[1] != gk.Group+"/"+gk.Kind {
		return ""
	}
	namespace, name, _ := strings.Cut(parts[2], "/")
	// For a cluster-scoped object, the ID has the namespace of the other objects.
	if name != key.Name || key.Namespace != "" && namespace != key.Namespace {
		return ""
	}
	return parts[0]
}

// MarksOfSource are the marks by which a source of an Application in one namespace finds objects in another, or in the
// same. A single object has none here: it is found by its name.
func MarksOfSource(s appsv1alpha1.DiscoverySource, application, namespace string) []Mark {
	switch {
	case s.PartOf != "":
		return []Mark{newMark(markPartOf, namespace, s.PartOf)}
	case s.Instance != "":
		return []Mark{newMark(markInstance, namespace, s.Instance)}
	case s.HelmRelease != nil:
		return []Mark{newMark(markHelm, namespace, OrOwn(s.HelmRelease.Namespace, application), s.HelmRelease.Name)}
	case s.FluxKustomization != nil:
		return []Mark{newMark(markKustomization, namespace, OrOwn(s.FluxKustomization.Namespace, application), s.FluxKustomization.Name)}
	case s.FluxHelmRelease != nil:
		return []Mark{newMark(markHelmRelease, namespace, OrOwn(s.FluxHelmRelease.Namespace, application), s.FluxHelmRelease.Name)}
	case s.ArgoApplication != nil && s.ArgoApplication.Namespace != "":
		return []Mark{newMark(markArgo, namespace, s.ArgoApplication.Namespace+"_"+s.ArgoApplication.Name)}
	case s.ArgoApplication != nil:
		return []Mark{newMark(markArgo, namespace, s.ArgoApplication.Name)}
	}
	return nil
}

// Distinct removes duplicate sources and kinds from a spec's discovery.
func Distinct(d *appsv1alpha1.Discovery, application string) *appsv1alpha1.Discovery {
	out := *d
	sources, kinds := sets.New[sourceKey](), sets.New[appsv1alpha1.DiscoveredKind]()
	out.Sources, out.Kinds = nil, nil
	for _, s := range d.Sources {
		if key := keyOfSource(s, application); !sources.Has(key) {
			sources.Insert(key)
			out.Sources = append(out.Sources, s)
		}
	}
	for _, k := range d.Kinds {
		if !kinds.Has(k) {
			kinds.Insert(k)
			out.Kinds = append(out.Kinds, k)
		}
	}
	return &out
}

// sourceKey is equal for equivalent sources. The namespace defaults to the Application's, except for an Application of
// Argo CD.
type sourceKey struct {
	partOf, instance                 string
	helm, kustomization, helmRelease appsv1alpha1.DiscoveredRelease
	argo                             appsv1alpha1.ArgoApplication
	object                           appsv1alpha1.DiscoveredObject
}

func keyOfSource(s appsv1alpha1.DiscoverySource, application string) sourceKey {
	release := func(r *appsv1alpha1.DiscoveredRelease) (key appsv1alpha1.DiscoveredRelease) {
		if r != nil {
			key = appsv1alpha1.DiscoveredRelease{Namespace: OrOwn(r.Namespace, application), Name: r.Name}
		}
		return key
	}
	key := sourceKey{
		partOf: s.PartOf, instance: s.Instance,
		helm: release(s.HelmRelease), kustomization: release(s.FluxKustomization), helmRelease: release(s.FluxHelmRelease),
	}
	if s.ArgoApplication != nil {
		key.argo = *s.ArgoApplication
	}
	if s.Object != nil {
		key.object = *s.Object
		key.object.Namespace = OrOwn(s.Object.Namespace, application)
	}
	return key
}

// MarksWanted are all marks that an Application may look for, in the namespaces that it sees. They do not depend on
// which objects exist.
func MarksWanted(app *appsv1alpha1.Application, s Visibility) []Mark {
	if app.Spec.Discover == nil {
		return nil
	}
	d := Distinct(app.Spec.Discover, app.Namespace)
	var marks []Mark
	for _, source := range d.Sources {
		for _, namespace := range s.Namespaces(d.Namespaces) {
			marks = append(marks, MarksOfSource(source, app.Namespace, namespace)...)
		}
		if o := source.Object; o != nil {
			gk := schema.GroupKind{Group: o.Group, Kind: o.Kind}
			if namespace := OrOwn(o.Namespace, app.Namespace); s.Namespace(namespace) {
				marks = append(marks, objectMark(gk, types.NamespacedName{Namespace: namespace, Name: o.Name}))
			}
			if s.AnyClusterScoped() {
				marks = append(marks, objectMark(gk, types.NamespacedName{Name: o.Name}))
			}
		}
		if gvk, key, ok := ParseInventory(source, app.Namespace); ok && s.Namespace(key.Namespace) {
			marks = append(marks, objectMark(gvk.GroupKind(), key))
		}
	}
	slices.Sort(marks)
	return slices.Clip(slices.Compact(marks))
}
