// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package multicluster

import (
	"context"
	"errors"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// recordingClient returns a client whose calls do nothing but report the context that they received.
func recordingClient(seen chan<- context.Context) client.WithWatch {
	return interceptor.NewClient(fake.NewClientBuilder().Build(), interceptor.Funcs{
		Get: func(ctx context.Context, _ client.WithWatch, _ client.ObjectKey, _ client.Object, _ ...client.GetOption) error {
			seen <- ctx
			return nil
		},
		List: func(ctx context.Context, _ client.WithWatch, _ client.ObjectList, _ ...client.ListOption) error {
			seen <- ctx
			return nil
		},
		Create: func(ctx context.Context, _ client.WithWatch, _ client.Object, _ ...client.CreateOption) error {
			seen <- ctx
			return nil
		},
		Delete: func(ctx context.Context, _ client.WithWatch, _ client.Object, _ ...client.DeleteOption) error {
			seen <- ctx
			return nil
		},
		DeleteAllOf: func(ctx context.Context, _ client.WithWatch, _ client.Object, _ ...client.DeleteAllOfOption) error {
			seen <- ctx
			return nil
		},
		Update: func(ctx context.Context, _ client.WithWatch, _ client.Object, _ ...client.UpdateOption) error {
			seen <- ctx
			return nil
		},
		Patch: func(ctx context.Context, _ client.WithWatch, _ client.Object, _ client.Patch, _ ...client.PatchOption) error {
			seen <- ctx
			return nil
		},
		Apply: func(ctx context.Context, _ client.WithWatch, _ runtime.ApplyConfiguration, _ ...client.ApplyOption) error {
			seen <- ctx
			return nil
		},
		SubResourceGet: func(
			ctx context.Context, _ client.Client, _ string, _, _ client.Object, _ ...client.SubResourceGetOption,
		) error {
			seen <- ctx
			return nil
		},
		SubResourceCreate: func(
			ctx context.Context, _ client.Client, _ string, _, _ client.Object, _ ...client.SubResourceCreateOption,
		) error {
			seen <- ctx
			return nil
		},
		SubResourceUpdate: func(
			ctx context.Context, _ client.Client, _ string, _ client.Object, _ ...client.SubResourceUpdateOption,
		) error {
			seen <- ctx
			return nil
		},
		SubResourcePatch: func(
			ctx context.Context, _ client.Client, _ string, _ client.Object, _ client.Patch, _ ...client.SubResourcePatchOption,
		) error {
			seen <- ctx
			return nil
		},
		SubResourceApply: func(
			ctx context.Context, _ client.Client, _ string, _ runtime.ApplyConfiguration, _ ...client.SubResourceApplyOption,
		) error {
			seen <- ctx
			return nil
		},
	})
}

func TestWithDeadlines(t *testing.T) {
	obj, ac := &corev1.ConfigMap{}, corev1ac.ConfigMap("n", "ns")
	calls := map[string]func(ctx context.Context, c client.Client) error{
		"Get":         func(ctx context.Context, c client.Client) error { return c.Get(ctx, client.ObjectKey{}, obj) },
		"List":        func(ctx context.Context, c client.Client) error { return c.List(ctx, &corev1.ConfigMapList{}) },
		"Create":      func(ctx context.Context, c client.Client) error { return c.Create(ctx, obj) },
		"Delete":      func(ctx context.Context, c client.Client) error { return c.Delete(ctx, obj) },
		"DeleteAllOf": func(ctx context.Context, c client.Client) error { return c.DeleteAllOf(ctx, obj) },
		"Update":      func(ctx context.Context, c client.Client) error { return c.Update(ctx, obj) },
		"Patch":       func(ctx context.Context, c client.Client) error { return c.Patch(ctx, obj, client.Merge) },
		"Apply":       func(ctx context.Context, c client.Client) error { return c.Apply(ctx, ac) },
		"StatusCreate": func(ctx context.Context, c client.Client) error {
			return c.Status().Create(ctx, obj, obj)
		},
		"StatusUpdate": func(ctx context.Context, c client.Client) error { return c.Status().Update(ctx, obj) },
		"StatusPatch":  func(ctx context.Context, c client.Client) error { return c.Status().Patch(ctx, obj, client.Merge) },
		"StatusApply":  func(ctx context.Context, c client.Client) error { return c.Status().Apply(ctx, ac) },
		"SubResourceGet": func(ctx context.Context, c client.Client) error {
			return c.SubResource("scale").Get(ctx, obj, obj)
		},
		"SubResourceCreate": func(ctx context.Context, c client.Client) error {
			return c.SubResource("eviction").Create(ctx, obj, obj)
		},
		"SubResourceUpdate": func(ctx context.Context, c client.Client) error {
			return c.SubResource("scale").Update(ctx, obj)
		},
		"SubResourcePatch": func(ctx context.Context, c client.Client) error {
			return c.SubResource("scale").Patch(ctx, obj, client.Merge)
		},
		"SubResourceApply": func(ctx context.Context, c client.Client) error {
			return c.SubResource("scale").Apply(ctx, ac)
		},
	}
	for name, call := range calls {
		t.Run(name, func(t *testing.T) {
			contexts := make(chan context.Context, 1)
			c := WithDeadlines(recordingClient(contexts), time.Hour)
			if err := call(t.Context(), c); err != nil {
				t.Fatal(err)
			}
			seen := <-contexts
			if deadline, ok := seen.Deadline(); !ok || time.Until(deadline) > time.Hour {
				t.Errorf("want a deadline within the hour, got %v (%v)", deadline, ok)
			}
			if !errors.Is(seen.Err(), context.Canceled) {
				t.Error("the context of a call is not released when it has returned")
			}

			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			if err := call(ctx, c); err != nil {
				t.Fatal(err)
			}
			if deadline, _ := (<-contexts).Deadline(); time.Until(deadline) > time.Minute {
				t.Errorf("an earlier deadline is kept: got %v", deadline)
			}
		})
	}
}

func TestWithDeadlinesOff(t *testing.T) {
	c := fake.NewClientBuilder().Build()
	if got := WithDeadlines(c, 0); got != client.Client(c) {
		t.Error("without a duration, the client is returned as it is")
	}
}
