// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package dynamicclient

import (
	"fmt"
	"net/http"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
)

// Objects is a dynamic client with watches that its caller reads.
type Objects interface {
	dynamic.Interface
	Streamer
}

// Metadata is a metadata client with watches that its caller reads.
type Metadata interface {
	metadata.Interface
	Streamer
}

// New returns a dynamic client like dynamic.NewForConfigAndClient, with watches that the caller reads.
func New(config *rest.Config, httpClient *http.Client) (Objects, error) {
	config = dynamic.ConfigFor(config)
	config.NegotiatedSerializer = codecs{config.NegotiatedSerializer}
	watches, err := newStreamer(config, httpClient, runtime.ContentTypeJSON)
	if err != nil {
		return nil, err
	}
	return struct {
		dynamic.Interface
		Streamer
	}{dynamic.New(watches.rest), watches}, nil
}

// acceptMetadata requests the metadata of objects in JSON.
const acceptMetadata = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json"

// NewMetadata returns a metadata client like metadata.NewForConfigAndClient, with watches that the caller reads.
func NewMetadata(config *rest.Config, httpClient *http.Client) (Metadata, error) {
	client, err := metadata.NewForConfigAndClient(config, httpClient)
	if err != nil {
		return nil, fmt.Errorf("cannot create a client: %w", err)
	}
	watches, err := newStreamer(metadata.ConfigFor(config), httpClient, acceptMetadata)
	if err != nil {
		return nil, err
	}
	return struct {
		metadata.Interface
		Streamer
	}{client, watches}, nil
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
