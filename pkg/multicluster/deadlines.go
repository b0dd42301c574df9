// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package multicluster

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/masthead-dev/masthead/pkg/limits"
)

// forCall makes a call with a deadline. Until it returns the response stays charged, because it is being decoded.
func forCall(ctx context.Context, d time.Duration, call func(context.Context) error) error {
	ctx, decoded := limits.WithDecoding(ctx)
	defer decoded()
	ctx, stop := context.WithTimeout(ctx, d)
	defer stop()
	return call(ctx)
}

// WithDeadlines returns a client whose calls end after d at the latest, or with the context of the call if that is
// earlier. d <= 0 means no deadline.
//
// A cluster that accepts connections and never answers blocks a client-go call until the context ends, which for a
// reconcile is by default never. The timeout of an HTTP client is not enough: it starts only after client-go's rate
// limiter has admitted the request.
func WithDeadlines(c client.WithWatch, d time.Duration) client.Client {
	if d <= 0 {
		return c
	}
	return interceptor.NewClient(c, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			return forCall(ctx, d, func(ctx context.Context) error { return c.Get(ctx, key, o, opts...) })
		},
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			return forCall(ctx, d, func(ctx context.Context) error { return c.List(ctx, list, opts...) })
		},
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			return forCall(ctx, d, func(ctx context.Context) error { return c.Create(ctx, o, opts...) })
		},
		Delete: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
			return forCall(ctx, d, func(ctx context.Context) error { return c.Delete(ctx, o, opts...) })
		},
		DeleteAllOf: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.DeleteAllOfOption) error {
			return forCall(ctx, d, func(ctx context.Context) error { return c.DeleteAllOf(ctx, o, opts...) })
		},
		Update: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.UpdateOption) error {
			return forCall(ctx, d, func(ctx context.Context) error { return c.Update(ctx, o, opts...) })
		},
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
			return forCall(ctx, d, func(ctx context.Context) error { return c.Patch(ctx, o, p, opts...) })
		},
		Apply: func(ctx context.Context, c client.WithWatch, o runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
			return forCall(ctx, d, func(ctx context.Context) error { return c.Apply(ctx, o, opts...) })
		},
		SubResourceGet: func(
			ctx context.Context, c client.Client, name string, o, sub client.Object, opts ...client.SubResourceGetOption,
		) error {
			return forCall(ctx, d, func(ctx context.Context) error { return c.SubResource(name).Get(ctx, o, sub, opts...) })
		},
		SubResourceCreate: func(
			ctx context.Context, c client.Client, name string, o, sub client.Object, opts ...client.SubResourceCreateOption,
		) error {
			return forCall(ctx, d, func(ctx context.Context) error { return c.SubResource(name).Create(ctx, o, sub, opts...) })
		},
		SubResourceUpdate: func(
			ctx context.Context, c client.Client, name string, o client.Object, opts ...client.SubResourceUpdateOption,
		) error {
			return forCall(ctx, d, func(ctx context.Context) error { return c.SubResource(name).Update(ctx, o, opts...) })
		},
		SubResourcePatch: func(
			ctx context.Context, c client.Client, name string, o client.Object, p client.Patch, opts ...client.SubResourcePatchOption,
		) error {
			return forCall(ctx, d, func(ctx context.Context) error { return c.SubResource(name).Patch(ctx, o, p, opts...) })
		},
		SubResourceApply: func(
			ctx context.Context, c client.Client, name string, o runtime.ApplyConfiguration, opts ...client.SubResourceApplyOption,
		) error {
			return forCall(ctx, d, func(ctx context.Context) error { return c.SubResource(name).Apply(ctx, o, opts...) })
		},
	})
}
