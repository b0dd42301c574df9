// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package applicationtest

import (
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	appsv1alpha1 "github.com/masthead-dev/masthead/apis/apps/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/kindwatch"
)

// Kinds that the tests use.
var (
	ConfigMaps  = appsv1alpha1.ComponentKind{Version: "v1", Kind: "ConfigMap"}
	Services    = appsv1alpha1.ComponentKind{Version: "v1", Kind: "Service"}
	Deployments = appsv1alpha1.ComponentKind{Group: "apps", Version: "v1", Kind: "Deployment"}
)

// DatabaseCRD is the definition of a kind Database in the fixture's own API group.
func (f *Fixture) DatabaseCRD() *apiextensionsv1.CustomResourceDefinition {
	group := f.Namespace + ".example.org"
	return &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: "databases." + group},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: group, Scope: apiextensionsv1.NamespaceScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{
				Plural: "databases", Singular: "database", Kind: "Database", ListKind: "DatabaseList",
			},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: "v1", Served: true, Storage: true,
				Subresources: &apiextensionsv1.CustomResourceSubresources{Status: &apiextensionsv1.CustomResourceSubresourceStatus{}},
				Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{
					Type: "object", XPreserveUnknownFields: new(true),
				}},
			}},
		},
	}
}

// DatabaseKind is the kind of DatabaseCRD.
func (f *Fixture) DatabaseKind() appsv1alpha1.ComponentKind {
	return appsv1alpha1.ComponentKind{Group: f.Namespace + ".example.org", Version: "v1", Kind: "Database"}
}

// SetStatus gives an object a status.
func (f *Fixture) SetStatus(u *unstructured.Unstructured, status map[string]any) {
	f.T.Helper()
	f.EditStatus(f.Workload, u, func() { u.Object["status"] = status })
}

// DiscoveredConfigMaps lets an Application discover ConfigMaps.
var DiscoveredConfigMaps = []appsv1alpha1.DiscoveredKind{{Version: "v1", Kind: "ConfigMap"}}

// CreateConfigMapWith creates a ConfigMap with labels and annotations.
func (f *Fixture) CreateConfigMapWith(name string, labels, annotations map[string]string) *corev1.ConfigMap {
	f.T.Helper()
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: f.Namespace, Name: name, Labels: labels, Annotations: annotations}}
	f.Create(f.Workload, cm)
	return cm
}

// PartOfLabels are the labels that say of which application an object is a part.
func PartOfLabels(name string) map[string]string {
	return map[string]string{appsv1alpha1.PartOfLabel: name}
}

// SetInventory gives a Kustomization an inventory.
func (f *Fixture) SetInventory(u *unstructured.Unstructured, ids ...string) {
	f.T.Helper()
	entries := []any{}
	for _, id := range ids {
		entries = append(entries, map[string]any{"id": strings.ReplaceAll(id, "~", f.Namespace), "v": "v1"})
	}
	f.EditStatus(f.Workload, u, func() {
		u.Object["status"] = map[string]any{
			"observedGeneration": u.GetGeneration(),
			"conditions":         []any{map[string]any{"type": "Ready", "status": "True", "reason": "ReconciliationSucceeded"}},
			"inventory":          map[string]any{"entries": entries},
		}
	})
}

// FinishJob gives a Job the conditions with which it ends.
func (f *Fixture) FinishJob(job *batchv1.Job, how, before batchv1.JobConditionType, reason string) {
	f.T.Helper()
	f.EditStatus(f.Workload, job, func() {
		now := metav1.Now()
		job.Status.StartTime = &now
		if how == batchv1.JobComplete {
			job.Status.CompletionTime = &now
		}
		for _, t := range []batchv1.JobConditionType{before, how} {
			job.Status.Conditions = append(job.Status.Conditions, batchv1.JobCondition{
				Type: t, Status: corev1.ConditionTrue, Reason: reason, LastTransitionTime: now,
			})
		}
	})
}

// CreateConfigMap creates a ConfigMap that is a component of an Application.
func (f *Fixture) CreateConfigMap(name, application string, change ...func(*corev1.ConfigMap)) *corev1.ConfigMap {
	f.T.Helper()
	cm := &corev1.ConfigMap{ObjectMeta: f.MemberMeta(name, application)}
	for _, c := range change {
		c(cm)
	}
	f.Create(f.Workload, cm)
	return cm
}

// MemberMeta is the metadata of a component of an Application.
func (f *Fixture) MemberMeta(name, application string) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Namespace: f.Namespace, Name: name, Labels: map[string]string{"app": application},
		Annotations: map[string]string{appsv1alpha1.ApplicationAnnotation: application},
	}
}

// ConfigMapKind is the kind as it is watched.
var ConfigMapKind = kindwatch.Kind{
	GroupVersionKind: schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, Resource: "configmaps", MetadataOnly: true,
}
