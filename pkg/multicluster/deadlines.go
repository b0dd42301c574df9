// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package multicluster

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/masthead-dev/masthead/pkg/limits"
)

// WithDeadlines returns a client whose calls end after d at the latest, or with the context of the call if that is
// earlier. d <= 0 means no deadline.
//
// A cluster that accepts connections and never answers blocks a client-go call until the context ends, which for a
// reconcile is by default never. The timeout of an HTTP client is not enough: it starts only after client-go's rate
// limiter has admitted the request.
func WithDeadlines(c client.Client, d time.Duration) client.Client {
	if d <= 0 {
		return c
	}
	return &deadlineClient{Client: c, d: d}
}

// forCall returns the context of one call, which ends when cancel is called. Until then the response stays charged,
// because it is being decoded.
func forCall(ctx context.Context, d time.Duration) (_ context.Context, cancel func()) {
	ctx, decoded := limits.WithDecoding(ctx)
	ctx, stop := context.WithTimeout(ctx, d)
	return ctx, func() {
		stop()
		decoded()
	}
}

type deadlineClient struct {
	client.Client
	d time.Duration
}

// Get implements client.Reader.
func (c *deadlineClient) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	ctx, cancel := forCall(ctx, c.d)
	defer cancel()
	return c.Client.Get(ctx, key, obj, opts...)
}

// List implements client.Reader.
func (c *deadlineClient) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	ctx, cancel := forCall(ctx, c.d)
	defer cancel()
	return c.Client.List(ctx, list, opts...)
}

// Apply implements client.Writer.
func (c *deadlineClient) Apply(ctx context.Context, obj runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
	ctx, cancel := forCall(ctx, c.d)
	defer cancel()
	return c.Client.Apply(ctx, obj, opts...)
}

// Create implements client.Writer.
func (c *deadlineClient) Create(ctx context.Context, obj client.Object, opts ...client.CreateOption) error {
	ctx, cancel := forCall(ctx, c.d)
	defer cancel()
	return c.Client.Create(ctx, obj, opts...)
}

// Delete implements client.Writer.
func (c *deadlineClient) Delete(ctx context.Context, obj client.Object, opts ...client.DeleteOption) error {
	ctx, cancel := forCall(ctx, c.d)
	defer cancel()
	return c.Client.Delete(ctx, obj, opts...)
}

// Update implements client.Writer.
func (c *deadlineClient) Update(ctx context.Context, obj client.Object, opts ...client.UpdateOption) error {
	ctx, cancel := forCall(ctx, c.d)
	defer cancel()
	return c.Client.Update(ctx, obj, opts...)
}

// Patch implements client.Writer.
func (c *deadlineClient) Patch(ctx context.Context, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
	ctx, cancel := forCall(ctx, c.d)
	defer cancel()
	return c.Client.Patch(ctx, obj, patch, opts...)
}

// DeleteAllOf implements client.Writer.
func (c *deadlineClient) DeleteAllOf(ctx context.Context, obj client.Object, opts ...client.DeleteAllOfOption) error {
	ctx, cancel := forCall(ctx, c.d)
	defer cancel()
	return c.Client.DeleteAllOf(ctx, obj, opts...)
}

// Status implements client.StatusClient.
func (c *deadlineClient) Status() client.SubResourceWriter {
	return &deadlineSubResourceWriter{w: c.Client.Status(), d: c.d}
}

// SubResource implements client.SubResourceClientConstructor.
func (c *deadlineClient) SubResource(name string) client.SubResourceClient {
	sub := c.Client.SubResource(name)
	return &deadlineSubResource{deadlineSubResourceWriter: deadlineSubResourceWriter{w: sub, d: c.d}, r: sub}
}

type deadlineSubResource struct {
	deadlineSubResourceWriter
	r client.SubResourceReader
}

// Get implements client.SubResourceReader.
func (s *deadlineSubResource) Get(
	ctx context.Context, obj, sub client.Object, opts ...client.SubResourceGetOption,
) error {
	ctx, cancel := forCall(ctx, s.d)
	defer cancel()
	return s.r.Get(ctx, obj, sub, opts...)
}

type deadlineSubResourceWriter struct {
	w client.SubResourceWriter
	d time.Duration
}

// Create implements client.SubResourceWriter.
func (s *deadlineSubResourceWriter) Create(
	ctx context.Context, obj, sub client.Object, opts ...client.SubResourceCreateOption,
) error {
	ctx, cancel := forCall(ctx, s.d)
	defer cancel()
	return s.w.Create(ctx, obj, sub, opts...)
}

// Update implements client.SubResourceWriter.
func (s *deadlineSubResourceWriter) Update(
	ctx context.Context, obj client.Object, opts ...client.SubResourceUpdateOption,
) error {
	ctx, cancel := forCall(ctx, s.d)
	defer cancel()
	return s.w.Update(ctx, obj, opts...)
}

// Patch implements client.SubResourceWriter.
func (s *deadlineSubResourceWriter) Patch(
	ctx context.Context, obj client.Object, patch client.Patch, opts ...client.SubResourcePatchOption,
) error {
	ctx, cancel := forCall(ctx, s.d)
	defer cancel()
	return s.w.Patch(ctx, obj, patch, opts...)
}

// Apply implements client.SubResourceWriter.
func (s *deadlineSubResourceWriter) Apply(
	ctx context.Context, obj runtime.ApplyConfiguration, opts ...client.SubResourceApplyOption,
) error {
	ctx, cancel := forCall(ctx, s.d)
	defer cancel()
	return s.w.Apply(ctx, obj, opts...)
}
