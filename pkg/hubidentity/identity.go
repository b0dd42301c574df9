// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package hubidentity

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
)

// MaxLength is the maximum number of characters of an identity. It keeps every name made of an identity within the
// limits of Kubernetes: 63 characters for a label and for the name of a finalizer, 128 for a field manager.
const MaxLength = 40

// An Identity identifies one hub. The empty one identifies none.
type Identity string

// Parse parses an identity. It must be a DNS label of at most MaxLength characters; the UID of a namespace is one. The
// error says what is wrong.
func Parse(text string) (Identity, error) {
	if len(text) > MaxLength {
		return "", fmt.Errorf("the identity of a hub has at most %d characters, this one has %d", MaxLength, len(text))
	}
	if problems := validation.IsDNS1123Label(text); len(problems) > 0 {
		return "", fmt.Errorf("the identity of a hub must be a DNS label: %s", problems[0])
	}
	return Identity(text), nil
}

// Finalizer returns the finalizer that the hub puts on claims in workload clusters.
func (i Identity) Finalizer() string { return i.named(fleetv1alpha1.RequirementFinalizer) }

// FieldManager returns the hub's field manager in workload clusters, in place of a general one.
func (i Identity) FieldManager(general string) string { return i.named(general) }

// named returns a name with the identity.
func (i Identity) named(general string) string {
	if i == "" {
		return general
	}
	return general + "-" + string(i)
}
