// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package importer_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

var update = flag.Bool("update", false, "write the golden file anew")

// onlyAllowedWrites holds what the importer wrote against the golden file, which is all that it may write: no write is
// missing in the file, and none is in it that no test showed.
func (r *recorder) onlyAllowedWrites() error {
	r.mu.Lock()
	got := slices.Sorted(maps.Keys(r.seen))
	r.mu.Unlock()
	const golden = "testdata/writes.txt"
	if *update {
		if err := os.WriteFile(golden, []byte(strings.Join(got, "\n")+"\n"), 0o600); err != nil {
			return fmt.Errorf("cannot write %s: %w", golden, err)
		}
	}
	content, err := os.ReadFile(golden)
	if err != nil {
		return fmt.Errorf("cannot read %s: %w", golden, err)
	}
	allowed := strings.Split(strings.TrimSpace(string(content)), "\n")
	var wrong []error
	for _, line := range got {
		if !slices.Contains(allowed, line) {
			wrong = append(wrong, fmt.Errorf("the importer made a write that is not in %s: %s", golden, line))
		}
	}
	for _, line := range allowed {
		// Without all tests the file has more.
		if flag.Lookup("test.run").Value.String() == "" && !slices.Contains(got, line) {
			wrong = append(wrong, fmt.Errorf("no test showed a write that is in %s: %s", golden, line))
		}
	}
	return errors.Join(wrong...)
}

// recorder notes every write of the importer. While it loses replies, the first write of each kind on each object is
// carried out and then answered with an error, as if the manager had been killed between the write and the next.
type recorder struct {
	mu     sync.Mutex
	seen   map[string]bool
	losing bool
	lost   map[string]bool
}

func (r *recorder) after(verb string, obj client.Object, err error) error {
	gvk := obj.GetObjectKind().GroupVersionKind()
	if known, err := apiutil.GVKForObject(obj, scheme); gvk.Empty() && err == nil {
		gvk = known
	}
	if strings.HasPrefix(gvk.Kind, "SelfSubject") {
		return err
	}
	scope := "in the namespace of the import"
	if obj.GetNamespace() == "" {
		scope = "cluster-scoped"
	}
	if ns := obj.GetNamespace(); ns != "" && ns != metav1.NamespaceDefault {
		scope = "in another namespace"
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.seen[fmt.Sprintf("%s %s %s", verb, gvk.GroupKind(), scope)] = true
	what := verb + gvk.Kind + obj.GetName()
	if err == nil && r.losing && !r.lost[what] {
		r.lost[what] = true
		return errors.New("the reply was lost")
	}
	return err
}

func (r *recorder) lose(on bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.losing, r.lost = on, map[string]bool{}
}

// applied is an object that is applied.
func applied(o runtime.ApplyConfiguration) client.Object {
	if u, ok := o.(interface {
		GetName() string
		GetNamespace() string
	}); ok {
		if object, ok := u.(client.Object); ok {
			return object
		}
		out := &unstructured.Unstructured{}
		out.SetName(u.GetName())
		out.SetNamespace(u.GetNamespace())
		if k, ok := u.(interface {
			GroupVersionKind() schema.GroupVersionKind
		}); ok {
			out.SetGroupVersionKind(k.GroupVersionKind())
		}
		return out
	}
	return &unstructured.Unstructured{}
}

func (r *recorder) funcs() interceptor.Funcs {
	return interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, obj client.Object, o ...client.CreateOption) error {
			options := &client.CreateOptions{}
			options.ApplyOptions(o)
			err := c.Create(ctx, obj, o...)
			if len(options.DryRun) > 0 {
				return err
			}
			return r.after("create", obj, err)
		},
		Delete: func(ctx context.Context, c client.WithWatch, obj client.Object, o ...client.DeleteOption) error {
			return r.after("delete", obj, c.Delete(ctx, obj, o...))
		},
		Update: func(ctx context.Context, c client.WithWatch, obj client.Object, o ...client.UpdateOption) error {
			return r.after("update", obj, c.Update(ctx, obj, o...))
		},
		Patch: func(ctx context.Context, c client.WithWatch, obj client.Object, p client.Patch, o ...client.PatchOption) error {
			return r.after("patch", obj, c.Patch(ctx, obj, p, o...))
		},
		Apply: func(ctx context.Context, c client.WithWatch, obj runtime.ApplyConfiguration, o ...client.ApplyOption) error {
			return r.after("apply", applied(obj), c.Apply(ctx, obj, o...))
		},
		SubResourceApply: func(ctx context.Context, c client.Client, sub string, obj runtime.ApplyConfiguration, o ...client.SubResourceApplyOption) error {
			return r.after("apply "+sub+" of", applied(obj), c.SubResource(sub).Apply(ctx, obj, o...))
		},
	}
}
