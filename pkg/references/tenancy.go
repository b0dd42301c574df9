// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package references

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// Tenancy says what an object may reference. The zero value is the strictest: a namespaced object references its own
// namespace, a cluster-scoped one any namespace, but no Secrets.
type Tenancy struct {
	// ClusterScoped are the cluster-scoped resources that namespaced objects may reference. A group or resource of "*"
	// matches any.
	ClusterScoped []schema.GroupResource

	// Secrets are those that cluster-scoped objects may reference. A namespace or name of "*" matches any. With the name
	// "*", they may also reference fields of other objects there that are marked for values from Secrets.
	Secrets []types.NamespacedName

	// SecretFields are fields that may be filled from Secrets although the author of their kind has not marked them.
	SecretFields []SecretField

	// Grants determines whether the owner of another namespace permits a reference; nil if none can.
	Grants Grants
}

// A SecretField is a field of a kind. Elements of lists and keys of maps are the wildcard: spec.users[*].password.
type SecretField struct {
	schema.GroupKind

	// FieldPath of the field. It includes everything below.
	FieldPath string
}

// Grants determines whether a namespace's owner permits objects of other namespaces to reference objects there.
type Grants interface {
	// Permits reports whether an object of the kind and namespace from may reference the target.
	Permits(ctx context.Context, from schema.GroupKind, fromNamespace string, to Source) (bool, error)
}

// errNotPermitted is the class of refusals.
var errNotPermitted = errors.New("not permitted") //nolint:gochecknoglobals // A constant.

// refused is a refusal for users.
type refused struct{ message string }

// Error implements error.
func (r refused) Error() string { return r.message }

// Is lets errors.Is find a refusal.
func (r refused) Is(target error) bool { return target == errNotPermitted }

// permits returns nil if an object may reference a source.
func (t *Tenancy) permits(ctx context.Context, from schema.GroupKind, fromNamespace string, to Source) error {
	switch {
	case fromNamespace == "":
		return t.permitsClusterScoped(to)
	case to.Namespace == fromNamespace:
		return nil
	case to.Namespace == "":
		if slices.ContainsFunc(t.ClusterScoped, func(gr schema.GroupResource) bool { return matches(gr, to.GroupResource()) }) {
			return nil
		}
		return refused{fmt.Sprintf("namespaced objects may not reference %s, which are cluster-scoped", to.GroupResource())}
	}
	if t.Grants != nil {
		permitted, err := t.Grants.Permits(ctx, from, fromNamespace, to)
		if err != nil {
			return fmt.Errorf("cannot find out whether a ReferenceGrant permits it: %w", err)
		}
		if permitted {
			return nil
		}
	}
	return refused{fmt.Sprintf("no ReferenceGrant in the namespace %q permits it", to.Namespace)}
}

func (t *Tenancy) permitsClusterScoped(to Source) error {
	if !isSecret(to.GroupResource()) {
		return nil
	}
	return t.allowsSecrets(func(s types.NamespacedName) bool { return either(s.Namespace, to.Namespace) && either(s.Name, to.Name) })
}

// permitsMarked returns nil if an object may reference a field that is marked for values from Secrets. Its value may be
// from any Secret of its namespace.
func (t *Tenancy) permitsMarked(fromNamespace string, to Source) error {
	if fromNamespace != "" || to.Namespace == "" {
		return nil
	}
	return t.allowsSecrets(func(s types.NamespacedName) bool { return either(s.Namespace, to.Namespace) && s.Name == wildcard })
}

func (t *Tenancy) allowsSecrets(which func(types.NamespacedName) bool) error {
	if !slices.ContainsFunc(t.Secrets, which) {
		return refused{"cluster-scoped objects may reference only the Secrets that the operator allowed"}
	}
	return nil
}

// matches reports whether a pattern names a resource, by any of its names.
func matches(pattern, gr schema.GroupResource) bool {
	return slices.ContainsFunc(sameResources(gr), func(same schema.GroupResource) bool {
		return either(pattern.Group, same.Group) && either(pattern.Resource, same.Resource)
	})
}

func either(pattern, value string) bool { return pattern == wildcard || pattern == value }
