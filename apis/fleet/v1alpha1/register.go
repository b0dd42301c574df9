// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var (
	// GroupVersion is the group and version of the kinds in this package.
	GroupVersion = schema.GroupVersion{Group: "fleet.masthead.dev", Version: "v1alpha1"}

	// SchemeBuilder collects what AddToScheme adds. It is apimachinery's own builder rather than controller-runtime's,
	// so that importing these types does not import controller-runtime.
	SchemeBuilder = runtime.NewSchemeBuilder(addKnownTypes)

	// AddToScheme adds the kinds of this package to a scheme.
	AddToScheme = SchemeBuilder.AddToScheme
)

func addKnownTypes(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(GroupVersion,
		&EnrollmentClass{}, &EnrollmentClassList{}, &ApplicationReport{}, &ApplicationReportList{}, &HealthRule{}, &HealthRuleList{},
		&ClusterImport{}, &ClusterImportList{})
	metav1.AddToGroupVersion(scheme, GroupVersion)
	return nil
}
