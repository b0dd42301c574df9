// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package record

import (
	"slices"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	appsv1alpha1 "github.com/masthead-dev/masthead/apis/apps/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/condition"
	"github.com/masthead-dev/masthead/pkg/controllers/application/definition"
	"github.com/masthead-dev/masthead/pkg/controllers/application/healthcheck"
	"github.com/masthead-dev/masthead/pkg/health"
	"github.com/masthead-dev/masthead/pkg/kindwatch"
)

// maxOwners bounds the Applications kept of an object's owner references, regardless of who wrote them. Masthead writes
// one.
const maxOwners = 16

// A Reducer makes records of arriving objects.
type Reducer struct {
	// assessor returns the current Assessor.
	assessor func() health.Assessor

	// texts are shared by the records of the cluster.
	texts *Texts

	packer *Packer

	// wanted are the marks by which Applications of the cluster discover objects; nil for none.
	wanted *WantedMarks
}

// NewReducer returns the Reducer of a cluster, whose texts and wanted marks are not shared with other clusters. wanted
// is nil if nothing is discovered there.
func NewReducer(assessor func() health.Assessor, shared *Texts, p *Packer, wanted *WantedMarks) Reducer {
	return Reducer{assessor: assessor, texts: shared, packer: p, wanted: wanted}
}

// Reduce returns the record of an object; false if nothing is kept. Neither Reduce nor the record retains the object.
func (r Reducer) Reduce(kind kindwatch.Kind, obj *unstructured.Unstructured) (kindwatch.Record, bool) {
	switch kind {
	case ApplicationKind:
		return r.application(kind, obj)
	case DefinitionKind, APIServiceKind, ForeignDefinitionKind:
		return reducedDefinition(kind, obj), true
	case HealthCheckPodKind:
		pod, ok := healthcheck.Reduce(obj)
		return &Pod{pod}, ok && pod.Owner != ""
	}
	if kind.GroupVersionKind == HealthCheckPodKind.GroupVersionKind && healthcheck.IsPod(obj.GetLabels()) {
		// It belongs to the Application, but not as a component.
		return nil, false
	}
	// Most objects of most kinds are unrelated to any Application.
	rec, candidate := membership(obj)
	markings := r.wanted.on(kind.GroupKind(), obj, rec.Controller != "")
	if !candidate && markings == nil {
		return nil, false
	}
	r.assess(kind, obj, rec)
	if markings != nil {
		return &markedComponent{Component: *rec, Markings: markings}, true
	}
	return rec, true
}

func (r Reducer) application(kind kindwatch.Kind, obj *unstructured.Unstructured) (kindwatch.Record, bool) {
	app := &appsv1alpha1.Application{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(obj.Object, app); err != nil {
		// The definition rejects such an Application, so this is not reported.
		return nil, false
	}
	orphaning := IsOrphaning(app)
	app.ManagedFields, app.OwnerReferences, app.Annotations, app.Labels, app.Finalizers = nil, nil, nil, nil, nil
	if orphaning {
		app.Finalizers = []string{metav1.FinalizerOrphanDependents}
	}
	// The entry has its version. Without it, equal Applications are packed to the same text.
	app.ResourceVersion = ""
	text, err := r.packer.pack(app)
	if err != nil {
		return nil, false
	}
	rec, _ := membership(obj)
	r.assess(kind, obj, rec)
	kept := Application{component: rec, packed: text, packer: r.packer}
	if markings := r.wanted.on(kind.GroupKind(), obj, rec.Controller != ""); markings != nil {
		return &markedApplication{Application: kept, Markings: markings}, true
	}
	return &kept, true
}

// membership reads what decides whether an object belongs to an Application, and whether it is a candidate.
func membership(obj *unstructured.Unstructured) (rec *Component, candidate bool) {
	rec = &Component{}
	if name, _, _ := unstructured.NestedString(obj.Object, "metadata", "annotations", appsv1alpha1.ApplicationAnnotation); name != "" && len(name) <= maxName {
		rec.Application = types.NamespacedName{Namespace: obj.GetNamespace(), Name: name}
	}
	readOwners(obj, rec)
	return rec, rec.Application.Name != "" || len(rec.Owners) > 0
}

// readOwners reads the Applications in an object's owner references, the count of all references, and the controller.
func readOwners(obj *unstructured.Unstructured, rec *Component) {
	field, _, _ := unstructured.NestedFieldNoCopy(obj.Object, "metadata", "ownerReferences")
	list, _ := field.([]any)
	rec.References = len(list)
	for i := range list {
		ref, _ := list[i].(map[string]any)
		uid, _ := ref["uid"].(string)
		if uid == "" || len(uid) > maxName {
			continue
		}
		if controller, _ := ref["controller"].(bool); controller && rec.Controller == "" {
			rec.Controller = types.UID(uid)
		}
		if len(rec.Owners) < maxOwners && isApplication(ref) {
			rec.Owners = append(rec.Owners, Owner{UID: types.UID(uid), Position: i})
		}
	}
}

// isApplication reports whether an owner reference is to an Application, in any version.
func isApplication(ref map[string]any) bool {
	apiVersion, _ := ref["apiVersion"].(string)
	group, _, _ := strings.Cut(apiVersion, "/")
	return ref["kind"] == ApplicationKind.Kind && group == appsv1alpha1.GroupVersion.Group
}

// assess completes the record of a candidate.
func (r Reducer) assess(kind kindwatch.Kind, obj *unstructured.Unstructured, rec *Component) {
	rec.Labels = NewLabelSet(obj.GetLabels())
	rec.Deleting = obj.GetDeletionTimestamp() != nil
	rec.Ignored = obj.GetAnnotations()[appsv1alpha1.IgnoreHealthAnnotation] == "true"
	rec.Finished = kind.GroupKind() == JobKind && hasFinished(obj)
	rec.Health = r.assessor().Assess(obj, kind.StatusSubresource && !kind.MetadataOnly)
	Share(r.texts, &rec.Health.Reason, &rec.Health.Message)
}

// hasFinished reports whether a Job has completed, and is deleted after its ttlSecondsAfterFinished.
func hasFinished(job *unstructured.Unstructured) bool {
	if _, limited, _ := unstructured.NestedInt64(job.Object, "spec", "ttlSecondsAfterFinished"); !limited {
		return false
	}
	return condition.IsTrue(job, string(batchv1.JobComplete))
}

func reducedDefinition(kind kindwatch.Kind, obj *unstructured.Unstructured) kindwatch.Record {
	rec := &Definition{resourceVersion: obj.GetResourceVersion()}
	if kind == ForeignDefinitionKind && obj.GetName() == definition.Name {
		seen := definition.SeenIn(metav1.Object(obj))
		rec.Seen = &seen
	}
	return rec
}

// IsOrphaning reports whether an Application is being deleted without its components, as by `kubectl delete
// --cascade=orphan`.
func IsOrphaning(app *appsv1alpha1.Application) bool {
	return app.DeletionTimestamp != nil && slices.Contains(app.Finalizers, metav1.FinalizerOrphanDependents)
}
