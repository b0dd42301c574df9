// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package localfleet

import (
	"fmt"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// endpoint is the address of an API server and the CA that identifies it.
type endpoint struct {
	server string
	ca     []byte
}

func apiServerURL(port int) string { return "https://" + loopback(port) }

// certificateKubeconfig is a kubeconfig with a client certificate.
func certificateKubeconfig(cluster, user string, e endpoint, pair keyPair) ([]byte, error) {
	return kubeconfig(cluster, user, e, &clientcmdapi.AuthInfo{
		ClientCertificateData: pair.certificate, ClientKeyData: pair.key,
	})
}

// tokenKubeconfig is a kubeconfig with a bearer token.
func tokenKubeconfig(cluster, user string, e endpoint, token string) ([]byte, error) {
	return kubeconfig(cluster, user, e, &clientcmdapi.AuthInfo{Token: token})
}

func kubeconfig(cluster, user string, e endpoint, credentials *clientcmdapi.AuthInfo) ([]byte, error) {
	config := clientcmdapi.NewConfig()
	name := user + "@" + cluster
	config.Clusters[cluster] = &clientcmdapi.Cluster{Server: e.server, CertificateAuthorityData: e.ca}
	config.AuthInfos[user] = credentials
	config.Contexts[name] = &clientcmdapi.Context{Cluster: cluster, AuthInfo: user}
	config.CurrentContext = name
	data, err := clientcmd.Write(*config)
	if err != nil {
		return nil, fmt.Errorf("cannot encode the kubeconfig of %q for cluster %q: %w", user, cluster, err)
	}
	return data, nil
}

// restConfigFromFile reads a kubeconfig of the fleet, without the rate limit of client-go: the fleet's own steps are
// few, and tests that need a limit set one.
func restConfigFromFile(path string) (*rest.Config, error) {
	config, err := clientcmd.BuildConfigFromFlags("", path)
	if err != nil {
		return nil, fmt.Errorf("cannot read the kubeconfig %s: %w", path, err)
	}
	config.QPS = -1
	config.UserAgent = "localfleet"
	return config, nil
}
