// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package dynamicclient

import (
	"fmt"
	"net/http"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/masthead-dev/masthead/pkg/guard"
)

// New returns a dynamic client like dynamic.NewForConfigAndClient, with guarded decoders.
func New(config *rest.Config, httpClient *http.Client, g *guard.Guard) (dynamic.Interface, error) {
	config = dynamic.ConfigFor(config)
	config.NegotiatedSerializer = codecs{config.NegotiatedSerializer}
	client, err := newREST(config, httpClient, g)
	if err != nil {
		return nil, err
	}
	return dynamic.New(client), nil
}

// newREST returns a REST client for absolute paths, with the guarded codecs of config.
func newREST(config *rest.Config, httpClient *http.Client, g *guard.Guard) (rest.Interface, error) {
	config = rest.CopyConfig(config)
	config.NegotiatedSerializer = guardedCodecs{config.NegotiatedSerializer, g}
	config.GroupVersion = nil
	// Requests use absolute paths, but the REST client requires a value.
	config.APIPath = "/unused"
	client, err := rest.UnversionedRESTClientForConfigAndClient(config, httpClient)
	if err != nil {
		return nil, fmt.Errorf("cannot create a REST client: %w", err)
	}
	return client, nil
}

// codecs are those of client-go's dynamic client, except for JSON.
type codecs struct {
	runtime.NegotiatedSerializer
}

// SupportedMediaTypes implements runtime.NegotiatedSerializer.
func (c codecs) SupportedMediaTypes() []runtime.SerializerInfo {
	infos := c.NegotiatedSerializer.SupportedMediaTypes()
	out := make([]runtime.SerializerInfo, 0, len(infos))
	for _, info := range infos {
		if info.MediaType == runtime.ContentTypeJSON && info.StreamSerializer != nil {
			stream := *info.StreamSerializer
			stream.Serializer = eventSerializer{stream.Serializer}
			info.Serializer, info.StreamSerializer = objectSerializer{info.Serializer}, &stream
		}
		out = append(out, info)
	}
	return out
}
