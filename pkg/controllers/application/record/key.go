// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package record

import "k8s.io/apimachinery/pkg/types"

// An ApplicationKey names an Application in its cluster.
type ApplicationKey = types.NamespacedName

// maxName is the maximum length of an Application's name.
const maxName = 253

// OrOwn returns namespace, or the Application's if it is empty.
func OrOwn(namespace, application string) string {
	if namespace == "" {
		return application
	}
	return namespace
}
