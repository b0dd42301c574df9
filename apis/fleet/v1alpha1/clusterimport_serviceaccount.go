// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// Imports: what is on the Secret with a kubeconfig that holds a token of a ServiceAccount of the imported cluster.
const (
	// ImportServiceAccountAnnotation names the ServiceAccount, as "<namespace>/<name>". A Secret without it holds the credentials
	// of the source.
	ImportServiceAccountAnnotation = "fleet.masthead.dev/import-service-account"

	// ImportTokenExpirationAnnotation is when the token expires, as RFC 3339. By both, a manager that starts knows the token, and
	// need not ask for another one.
	ImportTokenExpirationAnnotation = "fleet.masthead.dev/import-token-expiration" //nolint:gosec // A name, not a credential.
)

// ServiceAccount is the ServiceAccount of the imported cluster whose tokens the kubeconfig holds, if it is to hold such.
func (s *ClusterImportSpec) ServiceAccount() *ServiceAccountReference {
	if s.Kubeconfig == nil || s.KubeconfigSource() == KubeconfigSourceNone {
		return nil
	}
	return s.Kubeconfig.ServiceAccountRef
}
