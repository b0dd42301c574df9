// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package references

import (
	"context"
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	commonv1alpha1 "github.com/masthead-dev/masthead/apis/common/v1alpha1"
)

// BenchmarkResolve resolves 1, 10 and 100 references, each to its own object, of 1,000 objects, and then resolves these
// objects again: once they are resolved, nothing is read. reads/object is how many requests an object costs.
func BenchmarkResolve(b *testing.B) {
	const many = 1000
	for _, n := range []int{1, 10, 100} {
		server := &objects{of: map[string]map[string]any{}}
		references := make([]any, n)
		for i := range n {
			server.of[fmt.Sprintf("ConfigMap.v1/team-a/source-%d", i)] = map[string]any{"data": map[string]any{"region": "eu-west-1"}}
			references[i] = map[string]any{
				"resource": "configmaps", "name": fmt.Sprintf("source-%d", i), "fromFieldPath": "data.region", "toFieldPath": fmt.Sprintf("spec.field%d", i),
			}
		}
		resolver, kinds := NewResolver(), mapper()
		resolve := func(obj *unstructured.Unstructured, refs []commonv1alpha1.GenericReference) Result {
			result, err := resolver.Resolve(context.Background(), Request{Object: obj, References: refs, Reader: server, Mapper: kinds})
			if err != nil {
				b.Fatal(err)
			}
			return result
		}
		fresh := make([]*unstructured.Unstructured, many)
		for i := range fresh {
			fresh[i] = &unstructured.Unstructured{Object: map[string]any{
				"apiVersion": "example.org/v1", "kind": "Thing", "metadata": map[string]any{"namespace": "team-a", "name": fmt.Sprintf("thing-%d", i)},
				"spec": map[string]any{"references": references},
			}}
		}
		resolved := make([]*unstructured.Unstructured, many)
		for i := range fresh {
			resolved[i] = resolve(fresh[i], getReferences(b, fresh[i])).Object
		}
		for _, name := range []string{"first", "rest"} {
			what := fresh
			if name == "rest" {
				what = resolved
			}
			b.Run(fmt.Sprintf("%s/references=%d", name, n), func(b *testing.B) {
				server.reads = nil
				for b.Loop() {
					for _, obj := range what {
						resolve(obj, getReferences(b, obj))
					}
				}
				reads := 0
				for _, r := range server.reads {
					reads += r
				}
				b.ReportMetric(float64(reads)/float64(b.N*many), "reads/object")
				b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N*many), "µs/object")
			})
		}
	}
}
