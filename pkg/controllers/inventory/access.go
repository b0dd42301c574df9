// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"encoding/json"
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/runtime"
	clientcmdv1 "k8s.io/client-go/tools/clientcmd/api/v1"
	inventoryv1alpha1 "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"

	"github.com/masthead-dev/masthead/pkg/providers/connection"
)

// AccessProviderName is the name of Masthead's access provider in a ClusterProfile (KEP-5339), and of the cluster
// inventory API's plugin that understands it: it reads a kubeconfig from a Secret of the hub.
const AccessProviderName = "kubeconfig-secretreader"

// execExtension is the name of a cluster's extension that is passed to an exec plugin as its configuration.
const execExtension = "client.authentication.k8s.io/exec"

// secretReaderConfig is the configuration of the plugin: which Secret has the kubeconfig. Its current context is used
// unless another is named.
type secretReaderConfig struct {
	Key       string `json:"key"`
	Name      string `json:"name"`
	Namespace string `json:"namespace"`
	Context   string `json:"context,omitempty"`
}

// accessProviders are how other programs reach a cluster: the current data if there is a connection, else the last
// published.
func accessProviders(
	cluster connection.Cluster, remembered inventoryv1alpha1.ClusterProfileStatus,
) []inventoryv1alpha1.AccessProvider {
	switch {
	case !connectedNow(cluster):
		return ourAccess(remembered.AccessProviders)
	case cluster.Access == nil:
		return nil
	}
	at := cluster.Access.Secret
	to := cluster.Access.Endpoint
	config, err := json.Marshal(secretReaderConfig{Key: at.Key, Name: at.Name, Namespace: at.Namespace, Context: to.Context})
	if err != nil {
		return nil // Strings can always be marshalled.
	}
	return []inventoryv1alpha1.AccessProvider{{
		Name: AccessProviderName,
		Cluster: clientcmdv1.Cluster{
			Server: to.Server, CertificateAuthorityData: to.Authorities, TLSServerName: to.TLSServerName,
			InsecureSkipTLSVerify: to.InsecureSkipTLSVerify, ProxyURL: to.ProxyURL,
			Extensions: []clientcmdv1.NamedExtension{{Name: execExtension, Extension: runtime.RawExtension{Raw: config}}},
		},
	}}
}

// ourAccess filters out the access providers of others.
func ourAccess(all []inventoryv1alpha1.AccessProvider) []inventoryv1alpha1.AccessProvider {
	return slices.DeleteFunc(slices.Clone(all), func(p inventoryv1alpha1.AccessProvider) bool { return p.Name != AccessProviderName })
}

// accessDiffers reports whether our access providers differ from the desired ones. Extensions are compared by content.
func accessDiffers(existing, desired []inventoryv1alpha1.AccessProvider) bool {
	return !reflect.DeepEqual(applyAccess(ourAccess(existing)), applyAccess(desired))
}

// applyAccess is the apply configuration of access providers.
func applyAccess(providers []inventoryv1alpha1.AccessProvider) []any {
	applied := make([]any, 0, len(providers))
	for _, p := range providers {
		var fields map[string]any
		if data, err := json.Marshal(p); err == nil {
			_ = json.Unmarshal(data, &fields)
		}
		applied = append(applied, fields)
	}
	return applied
}
