// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// Imports: annotations on the Secret with a kubeconfig that describe its content. They are ignored unless the
// kubeconfig is, byte by byte, the one that was written with them.
const (
	// ImportContentAnnotation is a digest of the kubeconfig that was written with the other annotations.
	ImportContentAnnotation = "fleet.masthead.dev/import-content"

	// ImportSourceAnnotation identifies the source of credentials, among those that a spec can name, of the kubeconfig:
	// its kind, and a digest of what identifies it.
	ImportSourceAnnotation = "fleet.masthead.dev/import-source"

	// ImportServiceAccountAnnotation names the ServiceAccount, as "<namespace>/<name>". A Secret without it holds the
	// credentials of the source.
	ImportServiceAccountAnnotation = "fleet.masthead.dev/import-service-account"

	// ImportTokenExpirationAnnotation is when the token expires, as RFC 3339. With both annotations, a restarted manager
	// can reuse the token without requesting another one.
	ImportTokenExpirationAnnotation = "fleet.masthead.dev/import-token-expiration" //nolint:gosec // A name, not a credential.
)

// ServiceAccount returns the ServiceAccount of the imported cluster whose tokens the kubeconfig holds, if any.
func (s *ClusterImportSpec) ServiceAccount() *ServiceAccountReference {
	if s.Kubeconfig == nil || s.KubeconfigSource() == KubeconfigSourceNone {
		return nil
	}
	return s.Kubeconfig.ServiceAccountRef
}
