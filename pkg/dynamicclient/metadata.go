// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package dynamicclient

import (
	"context"
	"fmt"
	"net/http"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"

	"github.com/masthead-dev/masthead/pkg/guard"
)

// acceptMetadata requests the metadata of objects in JSON, the only format used for workload clusters.
const acceptMetadata = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json"

// NewMetadata returns a metadata client like metadata.NewForConfigAndClient, whose watches are guarded and in JSON.
// client-go's accepts no custom codecs, so watches are started here. Without a guard it is client-go's client.
func NewMetadata(config *rest.Config, httpClient *http.Client, g *guard.Guard) (metadata.Interface, error) {
	client, err := metadata.NewForConfigAndClient(config, httpClient)
	if err != nil {
		return nil, fmt.Errorf("cannot create a client: %w", err)
	}
	if g == nil {
		return client, nil
	}
	config = metadata.ConfigFor(config)
	config.AcceptContentTypes, config.ContentType = runtime.ContentTypeJSON, runtime.ContentTypeJSON
	watches, err := newREST(config, httpClient, g)
	if err != nil {
		return nil, err
	}
	return &metadataClient{Interface: client, watches: watches}, nil
}

// optionsVersion is the version of request options.
var optionsVersion = schema.GroupVersion{Version: "v1"} //nolint:gochecknoglobals // A constant.

type metadataClient struct {
	metadata.Interface
	watches rest.Interface
}

// Resource implements metadata.Interface.
func (c *metadataClient) Resource(resource schema.GroupVersionResource) metadata.Getter {
	all := c.Interface.Resource(resource)
	return &metadataGetter{metadataResource: metadataResource{ResourceInterface: all, client: c, resource: resource}, all: all}
}

type metadataGetter struct {
	metadataResource
	all metadata.Getter
}

// Namespace implements metadata.Getter.
func (g *metadataGetter) Namespace(namespace string) metadata.ResourceInterface {
	r := g.metadataResource
	r.ResourceInterface, r.namespace = g.all.Namespace(namespace), namespace
	return &r
}

type metadataResource struct {
	metadata.ResourceInterface
	client    *metadataClient
	resource  schema.GroupVersionResource
	namespace string
}

// Watch implements metadata.ResourceInterface.
func (r *metadataResource) Watch(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
	var timeout time.Duration
	if o.TimeoutSeconds != nil {
		timeout = time.Duration(*o.TimeoutSeconds) * time.Second
	}
	o.Watch = true
	root := []string{"apis", r.resource.Group}
	if r.resource.Group == "" {
		root = []string{"api"}
	}
	return r.client.watches.Get().AbsPath(append(root, r.resource.Version)...).
		NamespaceIfScoped(r.namespace, r.namespace != "").Resource(r.resource.Resource).
		SetHeader("Accept", acceptMetadata).
		SpecificallyVersionedParams(&o, scheme.ParameterCodec, optionsVersion).
		Timeout(timeout).Watch(ctx)
}
