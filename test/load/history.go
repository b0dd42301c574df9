// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package load

import (
	"context"
	"fmt"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/tools/cache"
)

// history records which objects each incarnation of a claim ever had in the hub.
type history struct {
	mu      sync.Mutex
	objects map[string]sets.Set[types.UID]
}

// watchHistory watches the hub until the context ends.
func watchHistory(ctx context.Context, hub dynamic.Interface, target string) (*history, error) {
	h := &history{objects: map[string]sets.Set[types.UID]{}}
	informer := dynamicinformer.NewFilteredDynamicInformer(hub, claims, target, 0, cache.Indexers{}, nil).Informer()
	_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    h.saw,
		UpdateFunc: func(_, now any) { h.saw(now) },
	})
	if err != nil {
		return nil, fmt.Errorf("cannot watch the hub: %w", err)
	}
	go informer.RunWithContext(ctx)
	if !cache.WaitForCacheSync(ctx.Done(), informer.HasSynced) {
		return nil, fmt.Errorf("cannot watch the hub: %w", context.Cause(ctx))
	}
	return h, nil
}

func (h *history) saw(obj any) {
	claim, ok := obj.(*unstructured.Unstructured)
	if !ok || claim.GetLabels()[incarnationLabel] == "" {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	incarnation := claim.GetLabels()[incarnationLabel]
	if h.objects[incarnation] == nil {
		h.objects[incarnation] = sets.New[types.UID]()
	}
	h.objects[incarnation].Insert(claim.GetUID())
}

// doubled are the incarnations that had more than one object in the hub.
func (h *history) doubled() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	var out []string
	for incarnation, objects := range h.objects {
		if objects.Len() > 1 {
			out = append(out, incarnation)
		}
	}
	return out
}
