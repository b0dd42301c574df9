// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"fmt"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// withToken returns the kubeconfig with its user replaced by one that has only the token.
func withToken(kubeconfig []byte, token string) ([]byte, error) {
	config, err := clientcmd.Load(kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("cannot read the administrator's kubeconfig: %w", err)
	}
	current, ok := config.Contexts[config.CurrentContext]
	if !ok {
		return nil, fmt.Errorf("the administrator's kubeconfig has no context %q", config.CurrentContext)
	}
	config.AuthInfos = map[string]*clientcmdapi.AuthInfo{current.AuthInfo: {Token: token}}
	return clientcmd.Write(*config)
}
