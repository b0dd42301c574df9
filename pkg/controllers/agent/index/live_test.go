// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package index

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/masthead-dev/masthead/pkg/guard"
	"github.com/masthead-dev/masthead/pkg/kindwatch"
)

// pages answers lists with pages of one object each.
type pages struct {
	client.Reader
	of  []string
	err error
	// panics is what a decoder might do.
	panics bool
}

func (p *pages) List(_ context.Context, into client.ObjectList, opts ...client.ListOption) error {
	o := &client.ListOptions{}
	o.ApplyOptions(opts)
	if p.panics {
		panic("cannot decode")
	}
	at := 0
	if o.Continue != "" {
		_, _ = fmt.Sscan(o.Continue, &at)
	}
	if o.Limit == 0 || o.AsListOptions().LabelSelector != "a=b" {
		return fmt.Errorf("requested too much: %v", o)
	}
	if at == len(p.of) {
		return p.err
	}
	list, _ := into.(*metav1.PartialObjectMetadataList)
	list.Items = []metav1.PartialObjectMetadata{{ObjectMeta: metav1.ObjectMeta{Name: p.of[at], Finalizers: []string{"a/b"}}}}
	if list.Continue = fmt.Sprint(at + 1); at+1 == len(p.of) && p.err == nil {
		list.Continue = ""
	}
	return nil
}

func TestEachLive(t *testing.T) {
	resource := schema.GroupResource{Group: "acmeco.org", Resource: "dbs"}
	kind := kindwatch.Kind{GroupVersionKind: schema.GroupVersionKind{Group: "acmeco.org", Version: "v1", Kind: "DB"}, Resource: "dbs", LabelSelector: "a=b"}
	enough := errors.New("enough")
	for name, tc := range map[string]struct {
		reason string
		given  pages
		stopAt string
		want   []string
		err    error
	}{
		"Pages":     {reason: "Every page is read.", given: pages{of: []string{"a", "b", "c"}}, want: []string{"a", "b", "c"}},
		"NotServed": {reason: "A kind that is not served has no objects.", given: pages{err: apierrors.NewNotFound(resource, "")}},
		"GoneMeanwhile": {
			reason: "Nor has one that is not served any more.", given: pages{of: []string{"a"}, err: apierrors.NewNotFound(resource, "")}, want: []string{"a"},
		},
		"Refused": {reason: "Every other answer is reported.", given: pages{of: []string{"a"}, err: enough}, want: []string{"a"}, err: enough},
		"Ended":   {reason: "Who has seen enough ends it.", given: pages{of: []string{"a", "b", "c"}}, stopAt: "b", want: []string{"a", "b"}, err: enough},
	} {
		t.Run(name, func(t *testing.T) {
			w := NewCluster(Connection{Name: "w1", Reader: &tc.given})
			var got []string
			err := w.EachLive(t.Context(), kind, func(obj *unstructured.Unstructured) error {
				if obj.GroupVersionKind() != kind.GroupVersionKind || len(obj.GetFinalizers()) != 1 {
					t.Errorf("want the kind and the metadata, got %v", obj.Object)
				}
				if got = append(got, obj.GetName()); obj.GetName() == tc.stopAt {
					return enough
				}
				return nil
			})
			if diff := cmp.Diff(tc.want, got); diff != "" || !errors.Is(err, tc.err) {
				t.Errorf("%s got %v (-want +got):\n%s", tc.reason, err, diff)
			}
		})
	}
}

func TestEachLiveSurvivesAPanic(t *testing.T) {
	w := NewCluster(Connection{Name: "w1", Reader: &pages{panics: true}, Guard: guard.New(func(*guard.Panic) {})})
	err := w.EachLive(t.Context(), kindwatch.Kind{}, func(*unstructured.Unstructured) error { return nil })
	if _, ok := errors.AsType[*guard.Panic](err); !ok {
		t.Errorf("want the panic as an error, got %v", err)
	}
}
