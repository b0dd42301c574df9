// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterprofile

import (
	"encoding/json"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	clientcmdv1 "k8s.io/client-go/tools/clientcmd/api/v1"
	inventoryv1alpha1 "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/condition"
	"github.com/masthead-dev/masthead/pkg/objects"
	"github.com/masthead-dev/masthead/pkg/providers/credentials"
)

// The supported access providers. A profile that has both is reached by the first.
const (
	kubeconfigReader = "kubeconfig-secretreader" // A kubeconfig in a key of a Secret.
	tokenReader      = "secretreader"            // A token in the key tokenKey of a Secret.
)

const (
	// execExtension is the name of a cluster's extension that configures an access provider.
	execExtension = "client.authentication.k8s.io/exec"
	tokenKey      = "token"
)

// readerConfig is the configuration of both access providers.
type readerConfig struct {
	// Name, Key and Context are of kubeconfigReader: a Secret, a key in it, and optionally a context of its kubeconfig.
	Name    string `json:"name"`
	Key     string `json:"key"`
	Context string `json:"context"`
	// Namespace is optional.
	Namespace string `json:"namespace"`
	// ClusterName is of tokenReader: a Secret.
	ClusterName string `json:"clusterName"`
}

// access is how the cluster of a profile is reached.
type access struct {
	provider    string
	cluster     clientcmdv1.Cluster
	secret, key string
	context     string
	// digest changes with anything of the above.
	digest string
}

// parseAccess returns how the cluster of a profile is reached, or why that is not known or refused. Its messages repeat
// nothing of the profile that the API server has not validated.
func parseAccess(p *inventoryv1alpha1.ClusterProfile) (access, *condition.Error) {
	refused := func(format string, args ...any) (access, *condition.Error) {
		return access{}, condition.NewError(fleetv1alpha1.ReasonBadKubeconfig, fmt.Sprintf(format, args...))
	}
	// The API: both lists are used, and the first has precedence.
	providers := slices.Concat(p.Status.AccessProviders, p.Status.CredentialProviders)
	if len(providers) == 0 {
		return access{}, condition.NewError(fleetv1alpha1.ReasonNotReady, "The ClusterProfile has no access provider yet")
	}
	provider := findProvider(providers)
	if provider == nil {
		return refused("The ClusterProfile has no supported access provider: only %s and %s are",
			kubeconfigReader, tokenReader)
	}
	config, ok := parseConfig(provider.Cluster.Extensions)
	if !ok {
		return refused("The access provider %s does not have exactly one extension %s with a configuration",
			provider.Name, execExtension)
	}
	a := access{
		provider: provider.Name, cluster: provider.Cluster,
		secret: config.Name, key: config.Key, context: config.Context,
	}
	if a.provider == tokenReader {
		a.secret, a.key, a.context = config.ClusterName, tokenKey, ""
	}
	switch {
	case config.Namespace != "" && config.Namespace != p.Namespace:
		return refused("The access provider %s names a Secret in another namespace than that of the ClusterProfile, "+
			"which is not read", a.provider)
	case len(validation.IsDNS1123Subdomain(a.secret)) > 0 || len(validation.IsConfigMapKey(a.key)) > 0:
		return refused("The access provider %s does not name a Secret and a key in it", a.provider)
	}
	content, err := json.Marshal(provider)
	if err != nil {
		return refused("The access provider %s cannot be read", a.provider)
	}
	a.digest = objects.DigestParts(content)
	return a, nil
}

// findProvider returns the supported access provider that is preferred, or nil.
func findProvider(all []inventoryv1alpha1.AccessProvider) *inventoryv1alpha1.AccessProvider {
	for _, name := range []string{kubeconfigReader, tokenReader} {
		for i := range all {
			if all[i].Name == name {
				return &all[i]
			}
		}
	}
	return nil
}

// parseConfig returns the configuration in the only extension for it.
func parseConfig(extensions []clientcmdv1.NamedExtension) (config readerConfig, found bool) {
	for _, e := range extensions {
		if e.Name != execExtension {
			continue
		}
		if found || json.Unmarshal(e.Extension.Raw, &config) != nil {
			return readerConfig{}, false
		}
		found = true
	}
	return config, found
}

// compose returns a kubeconfig of the profile's server and the Secret's credentials.
func (a access) compose(secret *corev1.Secret) ([]byte, error) {
	data := secret.Data[a.key]
	if len(data) == 0 {
		return nil, &credentials.InvalidError{Reason: credentials.ReasonEmpty, Message: fmt.Sprintf(
			"Secret %q has no key %q", secret.Name, a.key)}
	}
	if a.provider == tokenReader {
		return credentials.ComposeToken(a.cluster, data)
	}
	return credentials.Compose(a.cluster, data, a.context)
}
