// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package connection

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	mcr "sigs.k8s.io/multicluster-runtime/pkg/multicluster"
)

// ParseClusterName is the reverse of Key.ClusterName. It is false for a name that is not of the form
// "<source>/<namespace>/<name>".
func ParseClusterName(name mcr.ClusterName) (Key, bool) {
	parts := strings.Split(string(name), "/")
	if len(parts) != 3 || parts[0] == "" || parts[1] == "" || parts[2] == "" {
		return Key{}, false
	}
	return Key{Source: parts[0], Namespace: parts[1], Name: parts[2]}, true
}

// Object names the enrolled object in the hub.
func (k Key) Object() types.NamespacedName {
	return types.NamespacedName{Namespace: k.Namespace, Name: k.Name}
}

// Published is where what Masthead publishes about the cluster lives in the hub, whatever the kind: beside the enrolled
// object, named "<source>-<name>". A name that is too long for an object is cut, and ends in a digest so that two long
// names stay different.
func (k Key) Published() types.NamespacedName {
	name := k.Source + "-" + k.Name
	if len(name) > validation.DNS1123SubdomainMaxLength {
		sum := sha256.Sum256([]byte(name))
		suffix := "-" + hex.EncodeToString(sum[:8])
		name = strings.TrimRight(name[:validation.DNS1123SubdomainMaxLength-len(suffix)], "-.") + suffix
	}
	return types.NamespacedName{Namespace: k.Namespace, Name: name}
}
