// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterprofile

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	clientcmdv1 "k8s.io/client-go/tools/clientcmd/api/v1"
	inventoryv1alpha1 "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/condition"
	"github.com/masthead-dev/masthead/pkg/objects"
	"github.com/masthead-dev/masthead/pkg/providers/credentials"
)

// The access providers whose Secrets are read, unless the operator's file has a plugin of that name, which may read
// those of other namespaces. A profile that has both is reached by the first, and by another plugin only if it has
// none.
const (
	kubeconfigReader = "kubeconfig-secretreader" // A kubeconfig in a key of a Secret.
	tokenReader      = "secretreader"            // A token in the key tokenKey of a Secret.
)

func isReader(name string) bool { return name == kubeconfigReader || name == tokenReader }

const (
	// execExtension is the name of a cluster's extension that configures an access provider.
	execExtension = "client.authentication.k8s.io/exec"
	tokenKey      = "token"

	// maxProvider is how large an access provider may be, in bytes as JSON: the system limits what a plugin is passed.
	maxProvider = 64 << 10
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
	provider string
	cluster  clientcmdv1.Cluster
	// secret is empty where a plugin is run.
	secret, key string
	context     string
	// config is what the extension passes to a plugin.
	config []byte
	// digest changes with anything of the above.
	digest string
}

// parseAccess returns how the cluster of a profile is reached, or why that is not known or refused. Its messages repeat
// nothing of the profile that the API server has not validated. plugins are the access providers that have one.
func parseAccess(p *inventoryv1alpha1.ClusterProfile, plugins []string) (access, *condition.Error) {
	// The API: both lists are used, and the first has precedence.
	providers := slices.Concat(p.Status.AccessProviders, p.Status.CredentialProviders)
	if len(providers) == 0 {
		return access{}, condition.NewError(fleetv1alpha1.ReasonNotReady, "The ClusterProfile has no access provider yet")
	}
	supported := append([]string{kubeconfigReader, tokenReader}, slices.DeleteFunc(slices.Clone(plugins), isReader)...)
	provider := findProvider(providers, supported)
	if provider == nil {
		return access{}, refused("The ClusterProfile has no access provider that is supported for its namespace: %s",
			strings.Join(supported, ", "))
	}
	content, err := json.Marshal(provider)
	if err != nil || len(content) > maxProvider {
		return access{}, refused("The access provider %s cannot be read, or is larger than %d bytes",
			provider.Name, maxProvider)
	}
	a := access{provider: provider.Name, cluster: provider.Cluster, digest: objects.DigestParts(content)}
	config, count := findConfig(provider.Cluster.Extensions)
	reads := isReader(a.provider) && !slices.Contains(plugins, a.provider)
	switch {
	case count > 1, count == 0 && reads:
		return access{}, refused("The access provider %s does not have exactly one extension %s",
			a.provider, execExtension)
	case reads:
		return a.readBy(config, p.Namespace)
	default:
		a.config = config
	}
	return a, nil
}

// readBy adds the Secret that is read, by the configuration of an access provider for that.
func (a access) readBy(raw []byte, namespace string) (access, *condition.Error) {
	var config readerConfig
	err := json.Unmarshal(raw, &config)
	a.secret, a.key, a.context = config.Name, config.Key, config.Context
	if a.provider == tokenReader {
		a.secret, a.key, a.context = config.ClusterName, tokenKey, ""
	}
	switch {
	case err != nil:
		return access{}, refused("The extension %s of the access provider %s is not its configuration", execExtension, a.provider)
	case config.Namespace != "" && config.Namespace != namespace:
		return access{}, refused("The access provider %s names a Secret in another namespace than that of the ClusterProfile, "+
			"which is not read", a.provider)
	case len(validation.IsDNS1123Subdomain(a.secret)) > 0 || len(validation.IsConfigMapKey(a.key)) > 0:
		return access{}, refused("The access provider %s does not name a Secret and a key in it", a.provider)
	}
	return a, nil
}

func refused(format string, args ...any) *condition.Error {
	return condition.NewError(fleetv1alpha1.ReasonBadKubeconfig, fmt.Sprintf(format, args...))
}

// findProvider returns the supported access provider that is preferred, or nil.
func findProvider(all []inventoryv1alpha1.AccessProvider, supported []string) *inventoryv1alpha1.AccessProvider {
	for _, name := range supported {
		for i := range all {
			if all[i].Name == name {
				return &all[i]
			}
		}
	}
	return nil
}

// findConfig returns the last extension for the configuration of an access provider, and how many there are. Those for
// further arguments and variables are ignored.
func findConfig(extensions []clientcmdv1.NamedExtension) (config []byte, count int) {
	for _, e := range extensions {
		if e.Name == execExtension {
			config = e.Extension.Raw
			count++
		}
	}
	return config, count
}

// compose returns a kubeconfig of the profile's server and the Secret's credentials.
func (a access) compose(secret *corev1.Secret) ([]byte, error) {
	data := secret.Data[a.key]
	if len(data) == 0 {
		return nil, &credentials.InvalidError{Reason: credentials.ReasonEmpty, Message: fmt.Sprintf(
			"Secret %q has no key %q", secret.Name, a.key)}
	}
	if a.provider == tokenReader {
		return credentials.ComposeUser(a.cluster, clientcmdv1.AuthInfo{Token: string(data)})
	}
	return credentials.Compose(a.cluster, data, a.context)
}
