// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package connection

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	mcr "sigs.k8s.io/multicluster-runtime/pkg/multicluster"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
)

// Key names one enrolment: the object called Namespace/Name of one source.
type Key struct {
	Source, Namespace, Name string
}

// ClusterName returns the name under which the cluster is engaged. No part contains a slash (a source's name is a
// constant, the others are Kubernetes names), so two keys never share a cluster name.
func (k Key) ClusterName() mcr.ClusterName {
	return mcr.ClusterName(k.Source + "/" + k.Namespace + "/" + k.Name)
}

// String returns the cluster name, for logs.
func (k Key) String() string { return string(k.ClusterName()) }

// ParseClusterName is the reverse of Key.ClusterName. It returns false for a name not of the form
// "<source>/<namespace>/<name>".
func ParseClusterName(name mcr.ClusterName) (Key, bool) {
	parts := strings.Split(string(name), "/")
	if len(parts) != 3 || parts[0] == "" || parts[1] == "" || parts[2] == "" {
		return Key{}, false
	}
	return Key{Source: parts[0], Namespace: parts[1], Name: parts[2]}, true
}

// Object returns the name of the enrolled object in the hub.
func (k Key) Object() types.NamespacedName {
	return types.NamespacedName{Namespace: k.Namespace, Name: k.Name}
}

// Published returns the name of objects that Masthead publishes about the cluster in the hub, of any kind: in the
// enrolled object's namespace, named "<source>-<name>". A name that is too long is cut and ends in a digest, to stay
// unique.
func (k Key) Published() types.NamespacedName {
	name := k.Source + "-" + k.Name
	if len(name) > validation.DNS1123SubdomainMaxLength {
		sum := sha256.Sum256([]byte(name))
		suffix := "-" + hex.EncodeToString(sum[:8])
		name = strings.TrimRight(name[:validation.DNS1123SubdomainMaxLength-len(suffix)], "-.") + suffix
	}
	return types.NamespacedName{Namespace: k.Namespace, Name: name}
}

// EnrolledClass returns the EnrollmentClass named by an object's labels, and whether the object is enrolled. The words
// of YAML for true and false mean that: "False" or "off" as the name of a class would connect nothing, but not release
// a cluster either.
func EnrolledClass(labels map[string]string) (string, bool) {
	v := labels[fleetv1alpha1.EnrollLabel]
	switch strings.ToLower(v) {
	case "", fleetv1alpha1.EnrollLabelFalse, "no", "off":
		return "", false
	case fleetv1alpha1.EnrollLabelTrue, "yes", "on":
		return fleetv1alpha1.DefaultEnrollmentClassName, true
	default:
		return v, true
	}
}

// CredentialsVersion returns a unique version of a Secret, also across Secrets re-created under the same name.
func CredentialsVersion(secret metav1.Object) string {
	return string(secret.GetUID()) + "/" + secret.GetResourceVersion()
}

// NewKey returns the key of an object of a source.
func NewKey(sourceName string, nn types.NamespacedName) Key {
	return Key{Source: sourceName, Namespace: nn.Namespace, Name: nn.Name}
}
