// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package rollup

import (
	corev1 "k8s.io/api/core/v1"

	appsv1alpha1 "github.com/masthead-dev/masthead/apis/apps/v1alpha1"
)

// Summary is an Application's summary for the hub.
type Summary struct {
	ApplicationType, Version string
	Health                   appsv1alpha1.Health
	Ready                    corev1.ConditionStatus
	Wanted, Installed        int32
	Message                  string
}
