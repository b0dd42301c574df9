// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package fakecloud

import (
	"context"
	"encoding/base64"
	"fmt"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// tokenLifetime is the shortest lifetime that an API server allows.
const tokenLifetime int64 = 600

// API is the API server of a cluster in the cloud. Without a server the cluster has an unreachable address.
type API struct {
	// Server is its address, with the scheme.
	Server string
	// CA are its certificate authorities, PEM.
	CA []byte
	// Token returns credentials, different ones at each call.
	Token func(ctx context.Context) (string, error)
}

// ServiceAccountAPI uses a real API server as the one of a cluster in the cloud. Its credentials are tokens of a
// ServiceAccount in the namespace default, which is created and bound to a ClusterRole ("cluster-admin", "view"; "" for
// no rights).
func ServiceAccountAPI(ctx context.Context, config *rest.Config, name, clusterRole string) (API, error) {
	clients, err := kubernetes.NewForConfig(config)
	if err != nil {
		return API{}, fmt.Errorf("cannot create a client for %s: %w", config.Host, err)
	}
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: metav1.NamespaceDefault}}
	if _, err := clients.CoreV1().ServiceAccounts(account.Namespace).Create(ctx, account, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
		return API{}, fmt.Errorf("cannot create a ServiceAccount in %s: %w", config.Host, err)
	}
	if clusterRole != "" {
		binding := &rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: clusterRole},
			Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: account.Namespace, Name: name}},
		}
		if _, err := clients.RbacV1().ClusterRoleBindings().Create(ctx, binding, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
			return API{}, fmt.Errorf("cannot create a ClusterRoleBinding in %s: %w", config.Host, err)
		}
	}
	config = rest.CopyConfig(config) // The next call changes it, and others are using it.
	if err := rest.LoadTLSFiles(config); err != nil {
		return API{}, fmt.Errorf("cannot read the certificates for %s: %w", config.Host, err)
	}
	lifetime := tokenLifetime
	return API{
		Server: config.Host, CA: config.CAData,
		Token: func(ctx context.Context) (string, error) {
			answer, err := clients.CoreV1().ServiceAccounts(account.Namespace).CreateToken(ctx, name, &authenticationv1.TokenRequest{
				Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: &lifetime},
			}, metav1.CreateOptions{})
			if err != nil {
				return "", fmt.Errorf("cannot get a token from %s: %w", config.Host, err)
			}
			return answer.Status.Token, nil
		},
	}, nil
}

// endpoint returns the address of the server, or, if there is none, an unreachable one.
func (a API) endpoint(otherwise string) string {
	if a.Server == "" {
		return otherwise
	}
	return a.Server
}

// authority returns the CA as clouds show it: in base64. Without a CA it returns one that belongs to no server.
func (a API) authority() string {
	if len(a.CA) == 0 {
		return base64.StdEncoding.EncodeToString([]byte("-----BEGIN CERTIFICATE-----\n-----END CERTIFICATE-----\n"))
	}
	return base64.StdEncoding.EncodeToString(a.CA)
}

func (a API) kubeconfig(ctx context.Context) ([]byte, error) {
	user := clientcmdapi.NewAuthInfo()
	if a.Token != nil {
		token, err := a.Token(ctx)
		if err != nil {
			return nil, err
		}
		user.Token = token
	}
	return a.newKubeconfig(user)
}

func (a API) newKubeconfig(user *clientcmdapi.AuthInfo) ([]byte, error) {
	config := clientcmdapi.NewConfig()
	config.Clusters["cluster"] = &clientcmdapi.Cluster{Server: a.Server, CertificateAuthorityData: a.CA}
	config.AuthInfos["user"] = user
	config.Contexts["context"] = &clientcmdapi.Context{Cluster: "cluster", AuthInfo: "user"}
	config.CurrentContext = "context"
	content, err := clientcmd.Write(*config)
	if err != nil {
		return nil, fmt.Errorf("cannot write a kubeconfig: %w", err)
	}
	return content, nil
}
