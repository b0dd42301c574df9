// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package record

import "k8s.io/apimachinery/pkg/types"

// An ApplicationKey names an Application in its cluster.
type ApplicationKey = types.NamespacedName

// maxName is how long the name of an Application can be.
const maxName = 253

// OrOwn is a namespace, or that of the Application if none is named.
func OrOwn(namespace, application string) string {
	if namespace == "" {
		return application
	}
	return namespace
}
