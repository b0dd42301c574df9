// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package load

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/cache"
	toolswatch "k8s.io/client-go/tools/watch"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/test/ownership"
)

// history records which objects each incarnation of a claim ever had in the hub, who had each name there, and what the
// claims reported of that.
type history struct {
	names ownership.History

	mu      sync.Mutex
	objects map[string]sets.Set[types.UID]
	// owners are the present owners of names in the hub, reports the last reports of claims, by cluster and name.
	owners, reports map[string]string
	// incomplete means that changes in the hub were missed, so that reports prove nothing.
	incomplete bool
}

// watchHistory watches the hub and the clusters until the context ends.
func (l *Load) watchHistory(ctx context.Context) error {
	l.history = &history{objects: map[string]sets.Set[types.UID]{}, owners: map[string]string{}, reports: map[string]string{}}
	if err := follow(ctx, l.hub.Resource(claims).Namespace(l.target), l.history.hubChanged, l.history.missed); err != nil {
		return fmt.Errorf("cannot watch the hub: %w", err)
	}
	for _, c := range l.clusters {
		changed := func(_ watch.EventType, claim *unstructured.Unstructured) {
			l.history.claimChanged(string(c.uid), claim)
		}
		if err := follow(ctx, c.client.Resource(claims).Namespace(namespace), changed, func() {}); err != nil {
			return fmt.Errorf("cannot watch cluster %q: %w", c.name, err)
		}
	}
	return nil
}

// follow calls changed for each object, and then for each change, until the context ends. It calls missed when changes
// may have been missed: the API server has been restarted, and has no history.
func follow(
	ctx context.Context, resource dynamic.ResourceInterface, changed func(watch.EventType, *unstructured.Unstructured), missed func(),
) error {
	begin := func() (*toolswatch.RetryWatcher, error) {
		objects, err := resource.List(ctx, metav1.ListOptions{})
		if err != nil {
			return nil, err
		}
		for i := range objects.Items {
			changed(watch.Added, &objects.Items[i])
		}
		return toolswatch.NewRetryWatcherWithContext(ctx, objects.GetResourceVersion(), &cache.ListWatch{WatchFuncWithContext: resource.Watch})
	}
	w, err := begin()
	if err != nil {
		return err
	}
	go func() {
		for {
			for event := range w.ResultChan() {
				if obj, ok := event.Object.(*unstructured.Unstructured); ok {
					changed(event.Type, obj)
				}
			}
			if ctx.Err() != nil {
				return
			}
			missed()
			_ = wait.PollUntilContextCancel(ctx, 100*time.Millisecond, true, func(context.Context) (bool, error) {
				w, err = begin()
				return err == nil, nil
			})
		}
	}()
	return nil
}

func (h *history) missed() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.incomplete = true
}

func (h *history) hubChanged(change watch.EventType, obj *unstructured.Unstructured) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if incarnation := obj.GetLabels()[incarnationLabel]; incarnation != "" {
		if h.objects[incarnation] == nil {
			h.objects[incarnation] = sets.New[types.UID]()
		}
		h.objects[incarnation].Insert(obj.GetUID())
	}
	owner := obj.GetAnnotations()[fleetv1alpha1.SourceUIDAnnotation]
	switch {
	case change == watch.Deleted:
		owner = ownership.Unowned
	case owner == "":
		owner = ownership.Foreign
	}
	if h.owners[obj.GetName()] != owner {
		h.owners[obj.GetName()] = owner
		h.names.Changed(obj.GetName(), owner)
	}
}

func (h *history) claimChanged(cluster string, claim *unstructured.Unstructured) {
	h.mu.Lock()
	defer h.mu.Unlock()
	report, key := synced(claim), cluster+" "+claim.GetName()
	if h.reports[key] == report {
		return
	}
	h.reports[key] = report
	switch {
	case report == "True/Synced":
		h.names.Reported(cluster, claim.GetName(), func(owner string) bool { return owner == cluster })
	case strings.HasSuffix(report, "/Conflict"):
		h.names.Reported(cluster, claim.GetName(), func(owner string) bool { return owner != cluster && owner != ownership.Unowned })
	}
}

// problems are the incarnations that had more than one object in the hub, and the names whose history no order
// explains.
func (h *history) problems() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	var out []string
	for incarnation, objects := range h.objects {
		if objects.Len() > 1 {
			out = append(out, fmt.Sprintf("incarnation %s had more than one object in the hub", incarnation))
		}
	}
	if h.incomplete {
		return out
	}
	if err := h.names.Check(); err != nil {
		out = append(out, err.Error())
	}
	return out
}
