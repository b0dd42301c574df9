// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package credentials

import (
	"encoding/json"

	clientcmdv1 "k8s.io/client-go/tools/clientcmd/api/v1"
)

// Compose returns a kubeconfig for a cluster that is described elsewhere, with the token or the client certificate of a
// user of an untrusted kubeconfig: of the named context, or without a name of the current or only one. It uses nothing
// else of that kubeconfig, neither a server nor an authority. Parse checks the cluster. The error is an *InvalidError.
func Compose(cluster clientcmdv1.Cluster, kubeconfig []byte, context string) ([]byte, error) {
	_, _, user, err := current(kubeconfig, context)
	if err != nil {
		return nil, err
	}
	return ComposeUser(cluster, clientcmdv1.AuthInfo{
		Token: user.Token, ClientCertificateData: user.ClientCertificateData, ClientKeyData: user.ClientKeyData,
	})
}

// ComposeUser returns a kubeconfig for a cluster and a user that are described elsewhere. Parse checks both.
func ComposeUser(cluster clientcmdv1.Cluster, user clientcmdv1.AuthInfo) ([]byte, error) {
	const name = "composed"
	cluster.Extensions = nil // They configure programs, and Parse ignores them.
	data, err := json.Marshal(clientcmdv1.Config{
		Clusters:  []clientcmdv1.NamedCluster{{Name: name, Cluster: cluster}},
		AuthInfos: []clientcmdv1.NamedAuthInfo{{Name: name, AuthInfo: user}},
		Contexts:  []clientcmdv1.NamedContext{{Name: name, Context: clientcmdv1.Context{Cluster: name, AuthInfo: name}}},
	})
	if err != nil {
		return nil, invalid(ReasonMalformed, "The cluster and its credentials cannot be written as a kubeconfig")
	}
	return data, nil
}
