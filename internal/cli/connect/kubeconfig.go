// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package connect

import (
	"fmt"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/masthead-dev/masthead/pkg/providers/credentials"
)

// A Target is how the manager reaches a workload cluster.
type Target struct {
	// Server is the address as the hub sees it.
	Server string

	Authority     []byte
	TLSServerName string
	Insecure      bool
	ProxyURL      string
}

// Kubeconfig returns the kubeconfig with which the manager connects to a cluster, and checks that the manager would
// accept it. allow are the manager's own flags.
func Kubeconfig(t Target, token string, allow credentials.Options) ([]byte, error) {
	const name = "masthead"
	cluster := clientcmdapi.NewCluster()
	cluster.Server, cluster.CertificateAuthorityData, cluster.TLSServerName = t.Server, t.Authority, t.TLSServerName
	cluster.InsecureSkipTLSVerify, cluster.ProxyURL = t.Insecure, t.ProxyURL
	user := clientcmdapi.NewAuthInfo()
	user.Token = token
	kubeconfig := clientcmdapi.NewConfig()
	kubeconfig.Clusters[name], kubeconfig.AuthInfos[name] = cluster, user
	kubeconfig.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: name}
	kubeconfig.CurrentContext = name
	data, err := clientcmd.Write(*kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("cannot write the kubeconfig: %w", err)
	}
	if _, err := credentials.Parse(data, allow); err != nil {
		return nil, fmt.Errorf("the manager would not use this kubeconfig: %w", err)
	}
	return data, nil
}
