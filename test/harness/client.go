// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"bytes"
	"context"
	"fmt"
	"reflect"
	"strings"
	"sync"

	"github.com/spf13/pflag"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/util/jsonpath"
)

// Client does what `kubectl get` and `kubectl patch` do, within this process and over connections that it keeps. Tests
// that wait for something poll ten times a second: a kubectl for each request used a quarter of two processors.
//
// It may be used by several goroutines at once.
type Client struct {
	fleet Fleet

	mutex    sync.Mutex
	clusters map[string]*clusterClient
}

// NewClient returns a Client of a fleet.
func NewClient(fleet Fleet) *Client {
	return &Client{fleet: fleet, clusters: map[string]*clusterClient{}}
}

// Get returns what `kubectl get --ignore-not-found -o jsonpath=PATH ARGUMENTS` prints. The arguments are a resource and
// perhaps a name, or resource/name, and --namespace or --all-namespaces, and --selector. It returns "" for a path that
// leads nowhere and for an object that does not exist. It is an error if a cluster does not serve the resource.
func (c *Client) Get(ctx context.Context, cluster, path string, arguments ...string) (string, error) {
	ask, err := parseQuery(arguments)
	if err != nil {
		return "", err
	}
	printer := jsonpath.New("get").AllowMissingKeys(true)
	if err = printer.Parse(path); err != nil {
		return "", fmt.Errorf("cannot read the JSONPath %s: %w", path, err)
	}
	client, err := c.of(cluster)
	if err != nil {
		return "", err
	}
	content, err := client.read(ctx, ask)
	if apierrors.IsNotFound(err) && ask.name != "" {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("cannot get %s in cluster %q: %w", strings.Join(arguments, " "), cluster, err)
	}
	var out bytes.Buffer
	if err = printer.Execute(&out, withoutNulls(content)); err != nil {
		return "", fmt.Errorf("cannot find %s in %s of cluster %q: %w", path, strings.Join(arguments, " "), cluster, err)
	}
	return out.String(), nil
}

// withoutNulls removes the fields that are null, such as the conditions of a definition that was just created. A path
// through a missing field leads nowhere, but JSONPath cannot filter a field that is null.
func withoutNulls(value any) any {
	switch value := value.(type) {
	case map[string]any:
		for field, content := range value {
			if content == nil {
				delete(value, field)
				continue
			}
			value[field] = withoutNulls(content)
		}
	case []any:
		for i := range value {
			value[i] = withoutNulls(value[i])
		}
	}
	return value
}

// Patch does what `kubectl patch --type=merge --patch=PATCH ARGUMENTS` does, with the arguments of Get and a name.
func (c *Client) Patch(ctx context.Context, cluster, patch string, arguments ...string) error {
	object, err := parseQuery(arguments)
	if err != nil {
		return err
	}
	if object.name == "" {
		return fmt.Errorf("%q name no object", arguments)
	}
	client, err := c.of(cluster)
	if err != nil {
		return err
	}
	err = client.do(object, func(objects dynamic.ResourceInterface) error {
		_, err := objects.Patch(ctx, object.name, types.MergePatchType, []byte(patch), metav1.PatchOptions{FieldManager: "kubectl-patch"})
		return err
	})
	if err != nil {
		return fmt.Errorf("cannot patch %s in cluster %q: %w", strings.Join(arguments, " "), cluster, err)
	}
	return nil
}

// query is what is requested: all objects of a resource if it has no name.
type query struct {
	resource, name, namespace, selector string
}

func parseQuery(arguments []string) (query, error) {
	var ask query
	everywhere := false
	flags := pflag.NewFlagSet("get", pflag.ContinueOnError)
	flags.StringVarP(&ask.namespace, "namespace", "n", metav1.NamespaceDefault, "")
	flags.BoolVarP(&everywhere, "all-namespaces", "A", false, "")
	flags.StringVarP(&ask.selector, "selector", "l", "", "")
	if err := flags.Parse(arguments); err != nil {
		return query{}, fmt.Errorf("cannot read the arguments %q: %w", arguments, err)
	}
	if everywhere {
		ask.namespace = metav1.NamespaceAll
	}
	what := flags.Args()
	if len(what) == 1 {
		what = strings.Split(what[0], "/")
	}
	switch len(what) {
	case 1:
		ask.resource = what[0]
		return ask, nil
	case 2:
		ask.resource, ask.name = what[0], what[1]
		return ask, nil
	}
	return query{}, fmt.Errorf("%q are not a resource and perhaps a name", arguments)
}

// of is the client of a cluster with the address and the credentials that its kubeconfig has now.
func (c *Client) of(cluster string) (*clusterClient, error) {
	config, err := c.fleet.Config(cluster)
	if err != nil {
		return nil, err
	}
	// One test reads ten times a second, which must not be spread over time by a rate limit.
	config.QPS = -1
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if known, ok := c.clusters[cluster]; ok && reflect.DeepEqual(known.config, config) {
		return known, nil
	}
	client, err := newClusterClient(config)
	if err != nil {
		return nil, fmt.Errorf("cannot create a client for cluster %q: %w", cluster, err)
	}
	c.clusters[cluster] = client
	return client, nil
}

type clusterClient struct {
	config  *rest.Config
	objects dynamic.Interface
	// kinds knows what the last discovery has found. do resets it when a resource is requested that it does not know.
	// names uses it, and knows short names, too.
	kinds meta.ResettableRESTMapper
	names meta.RESTMapper
}

func newClusterClient(config *rest.Config) (*clusterClient, error) {
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, err
	}
	objects, err := dynamic.NewForConfigAndClient(config, client)
	if err != nil {
		return nil, err
	}
	served, err := discovery.NewDiscoveryClientForConfigAndClient(config, client)
	if err != nil {
		return nil, err
	}
	cached := memory.NewMemCacheClient(served)
	kinds := restmapper.NewDeferredDiscoveryRESTMapper(cached)
	return &clusterClient{config: config, objects: objects, kinds: kinds, names: restmapper.NewShortcutExpander(kinds, cached, nil)}, nil
}

// do calls a function with the resource that a query names. Kinds are created and deleted: if a kind is not known, or
// is no longer served in the known version, discovery runs again, once.
func (c *clusterClient) do(ask query, call func(dynamic.ResourceInterface) error) error {
	err := c.try(ask, call)
	if !meta.IsNoMatchError(err) && !isUnserved(err) {
		return err
	}
	c.kinds.Reset()
	if again := c.try(ask, call); !meta.IsNoMatchError(again) {
		return again
	}
	return err
}

func (c *clusterClient) try(ask query, call func(dynamic.ResourceInterface) error) error {
	mapping, err := c.mapping(ask.resource)
	if err != nil {
		return err
	}
	if mapping.Scope.Name() == meta.RESTScopeNameNamespace {
		return call(c.objects.Resource(mapping.Resource).Namespace(ask.namespace))
	}
	return call(c.objects.Resource(mapping.Resource))
}

// read returns the content of the object, or of the list of objects.
func (c *clusterClient) read(ctx context.Context, ask query) (content map[string]any, err error) {
	err = c.do(ask, func(objects dynamic.ResourceInterface) error {
		if ask.name == "" {
			list, err := objects.List(ctx, metav1.ListOptions{LabelSelector: ask.selector})
			if err == nil {
				content = list.UnstructuredContent()
			}
			return err
		}
		object, err := objects.Get(ctx, ask.name, metav1.GetOptions{})
		if err == nil {
			content = object.UnstructuredContent()
		}
		return err
	})
	return content, err
}

// isUnserved reports whether an API server answered that it has no such path, as opposed to no such object.
func isUnserved(err error) bool {
	return apierrors.IsNotFound(err) && apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse)
}

// mapping is the mapping of a resource in an API server, for a name like "crd", "configmap" or
// "clusters.cluster.x-k8s.io".
func (c *clusterClient) mapping(resource string) (*meta.RESTMapping, error) {
	kind, err := c.names.KindFor(schema.ParseGroupResource(resource).WithVersion(""))
	if err != nil {
		return nil, err
	}
	return c.names.RESTMapping(kind.GroupKind(), kind.Version)
}
