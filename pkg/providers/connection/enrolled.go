// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package connection

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// EnrolmentGetter is the part of a Source that decides whether an object is enrolled.
type EnrolmentGetter interface {
	// Name is the first part of the cluster names, for example "capi". It is constant and contains no slash.
	Name() string

	// Describe returns the enrolment as in the hub's synced cache, or ErrNotEnrolled. Only Describe decides on enrolment:
	// watches do not filter by the label, so that its removal is noticed.
	Describe(ctx context.Context, key types.NamespacedName) (*Enrolment, error)
}

// EnrolmentGetters are consulted before published objects of a cluster are removed.
type EnrolmentGetters map[string]EnrolmentGetter

// NewEnrolmentGetters indexes sources by their names.
func NewEnrolmentGetters(sources []EnrolmentGetter) EnrolmentGetters {
	out := make(EnrolmentGetters, len(sources))
	for _, s := range sources {
		out[s.Name()] = s
	}
	return out
}

// HasLeft reports whether a cluster that is not in the fleet is no longer enrolled, according to its source. An
// enrolled cluster may not be in the fleet yet: the fleet is never known to be complete. A cluster of an unknown source
// has not left.
func (d EnrolmentGetters) HasLeft(ctx context.Context, key Key) (bool, error) {
	source, ok := d[key.Source]
	if !ok {
		return false, nil
	}
	_, err := source.Describe(ctx, key.Object())
	if errors.Is(err, ErrNotEnrolled) {
		return true, nil
	}
	if err != nil {
		return false, fmt.Errorf("cannot determine whether cluster %q is enrolled: %w", key, err)
	}
	return false, nil
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
