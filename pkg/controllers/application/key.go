// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package application

import "k8s.io/apimachinery/pkg/types"

// An applicationKey names an Application in its cluster.
type applicationKey = types.NamespacedName

// maxName is how long the name of an Application can be.
const maxName = 253

// orOwn is a namespace, or that of the Application if none is named.
func orOwn(namespace, application string) string {
	if namespace == "" {
		return application
	}
	return namespace
}
