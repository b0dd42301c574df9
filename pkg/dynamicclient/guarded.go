// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package dynamicclient

import (
	"io"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/masthead-dev/masthead/pkg/guard"
)

// client-go decodes watch events in its own goroutine, where callers cannot recover. The calls there are guarded:
// finding the end of an event, decoding the event, and decoding its object. A panic in one of them is an error of the
// watch, like an event that cannot be decoded.

// decoding is the task name for such a panic.
const decoding = "decoding an answer"

// guardedCodecs wrap codecs so that their decoders return an error instead of panicking.
type guardedCodecs struct {
	runtime.NegotiatedSerializer
	guard *guard.Guard
}

// SupportedMediaTypes implements runtime.NegotiatedSerializer.
func (c guardedCodecs) SupportedMediaTypes() []runtime.SerializerInfo {
	infos := c.NegotiatedSerializer.SupportedMediaTypes()
	out := make([]runtime.SerializerInfo, 0, len(infos))
	for _, info := range infos {
		if info.StreamSerializer != nil {
			stream := *info.StreamSerializer
			stream.Serializer = guardedSerializer{stream.Serializer, c.guard}
			stream.Framer = guardedFramer{stream.Framer, c.guard}
			info.StreamSerializer = &stream
		}
		out = append(out, info)
	}
	return out
}

// DecoderToVersion implements runtime.NegotiatedSerializer.
func (c guardedCodecs) DecoderToVersion(serializer runtime.Decoder, gv runtime.GroupVersioner) runtime.Decoder {
	return guardedDecoder{c.NegotiatedSerializer.DecoderToVersion(serializer, gv), c.guard}
}

type guardedDecoder struct {
	runtime.Decoder
	guard *guard.Guard
}

// Decode implements runtime.Decoder.
func (d guardedDecoder) Decode(
	data []byte, defaults *schema.GroupVersionKind, into runtime.Object,
) (obj runtime.Object, gvk *schema.GroupVersionKind, err error) {
	err = d.guard.Run(decoding, func() (err error) {
		obj, gvk, err = d.Decoder.Decode(data, defaults, into)
		return err
	})
	return obj, gvk, err
}

type guardedSerializer struct {
	runtime.Serializer
	guard *guard.Guard
}

// Decode implements runtime.Decoder.
func (s guardedSerializer) Decode(
	data []byte, defaults *schema.GroupVersionKind, into runtime.Object,
) (runtime.Object, *schema.GroupVersionKind, error) {
	return guardedDecoder{s.Serializer, s.guard}.Decode(data, defaults, into)
}

type guardedFramer struct {
	runtime.Framer
	guard *guard.Guard
}

// NewFrameReader implements runtime.Framer.
func (f guardedFramer) NewFrameReader(r io.ReadCloser) io.ReadCloser {
	return guardedReader{f.Framer.NewFrameReader(r), f.guard}
}

type guardedReader struct {
	io.ReadCloser
	guard *guard.Guard
}

// Read implements io.Reader.
func (r guardedReader) Read(p []byte) (n int, err error) {
	err = r.guard.Run(decoding, func() (err error) {
		n, err = r.ReadCloser.Read(p)
		return err
	})
	return n, err
}
