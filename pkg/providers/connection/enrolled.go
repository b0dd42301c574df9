// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package connection

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Describer is the part of a Source that says whether an object is enrolled.
type Describer interface {
	// Name is the first part of the cluster names, for example "capi". It is constant and holds no slash.
	Name() string

	// Describe returns what the hub says about an enrolment now, from the hub's filled cache, or nothing and an error; nil
	// and no error if the object is gone or is not enrolled. It is the only place where enrolment is decided: watches do
	// not filter by the label, so that its removal is seen.
	Describe(ctx context.Context, key types.NamespacedName) (*Enrolment, error)
}

// Describers are asked before what is published of a cluster is removed.
type Describers map[string]Describer

// DescribersOf finds sources by their names.
func DescribersOf(sources []Describer) Describers {
	out := make(Describers, len(sources))
	for _, s := range sources {
		out[s.Name()] = s
	}
	return out
}

// HasLeft is whether a cluster that is not in the fleet is not enrolled any more, as its own source says. One that is
// enrolled and not in the fleet is about to be: there is no moment at which the fleet is known to be complete. Of the
// cluster of a source that is not here nothing is known, so that it has not left.
func (d Describers) HasLeft(ctx context.Context, key Key) (bool, error) {
	source, ok := d[key.Source]
	if !ok {
		return false, nil
	}
	enrolment, err := source.Describe(ctx, key.Object())
	if err != nil {
		return false, fmt.Errorf("cannot tell whether cluster %q is enrolled: %w", key, err)
	}
	return enrolment == nil, nil
}

// CredentialsSecret reads the Secret with the credentials of a cluster, for Source.Kubeconfig. The error is
// ErrNoCredentials if there is none.
func CredentialsSecret(ctx context.Context, live client.Reader, key types.NamespacedName) (*corev1.Secret, error) {
	secret := &corev1.Secret{}
	err := live.Get(ctx, key, secret)
	switch {
	case apierrors.IsNotFound(err):
		return nil, fmt.Errorf("cannot find Secret %q: %w", key, ErrNoCredentials)
	case err != nil:
		return nil, fmt.Errorf("cannot get Secret %q: %w", key, err)
	}
	return secret, nil
}
