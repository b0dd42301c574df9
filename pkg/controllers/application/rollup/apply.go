// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package rollup

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	mcr "sigs.k8s.io/multicluster-runtime/pkg/multicluster"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/providers/connection"
)

// reportMetadataDiffers reports whether the metadata of a report has to be written. Metadata added by others is kept.
func reportMetadataDiffers(report *fleetv1alpha1.ApplicationReport, cluster connection.Cluster) bool {
	return report.Annotations[fleetv1alpha1.ClusterNameAnnotation] != string(cluster.Name) || !ownsReport(report, cluster)
}

// ownsReport reports whether a report belongs to the enrolled object. It says nothing about the cluster of another
// object of the same name.
func ownsReport(report *fleetv1alpha1.ApplicationReport, cluster connection.Cluster) bool {
	return slices.ContainsFunc(report.OwnerReferences, func(o metav1.OwnerReference) bool {
		return equality.Semantic.DeepEqual(o, reportOwner(cluster))
	})
}

// ownedByAnother reports whether a report is about the cluster of another enrolled object, which had the name before.
// Its history does not apply to this one.
func ownedByAnother(report *fleetv1alpha1.ApplicationReport, cluster connection.Cluster) bool {
	return len(report.OwnerReferences) > 0 && !ownsReport(report, cluster)
}

// applyMetadata creates a report or repairs its metadata, and returns it.
func (w *rollupWriter) applyMetadata(
	ctx context.Context, key connection.Key, cluster connection.Cluster, existing *fleetv1alpha1.ApplicationReport,
) (*fleetv1alpha1.ApplicationReport, error) {
	owner := reportOwner(cluster)
	u := reportAt(key)
	u.SetAnnotations(map[string]string{fleetv1alpha1.ClusterNameAnnotation: string(cluster.Name)})
	u.Object["metadata"].(map[string]any)["ownerReferences"] = []any{map[string]any{
		"apiVersion": owner.APIVersion, "kind": owner.Kind, "name": owner.Name, "uid": string(owner.UID),
	}}
	if existing != nil {
		u.SetUID(existing.UID)
	}
	err := w.hub.Apply(ctx, client.ApplyConfigurationFromUnstructured(u), client.FieldOwner(fleetv1alpha1.FieldManager), client.ForceOwnership)
	if err != nil {
		return nil, fmt.Errorf("cannot apply ApplicationReport %q: %w", key.Published(), err)
	}
	return w.own.note(cluster.Name, existing, u, time.Time{})
}

// applyStatus writes the status of a report.
func (w *rollupWriter) applyStatus(
	ctx context.Context, key connection.Key, name mcr.ClusterName, existing *fleetv1alpha1.ApplicationReport,
	status fleetv1alpha1.ApplicationReportStatus,
) error {
	// Others' conditions are not applied: Masthead would own them.
	status.Conditions = ourConditions(status.Conditions)
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&status)
	if err != nil {
		return fmt.Errorf("cannot convert the status of ApplicationReport %q: %w", key.Published(), err)
	}
	u := reportAt(key)
	u.SetUID(existing.UID)
	u.Object["status"] = content
	err = w.hub.Status().Apply(ctx, client.ApplyConfigurationFromUnstructured(u),
		client.FieldOwner(fleetv1alpha1.FieldManager), client.ForceOwnership)
	if err != nil {
		return fmt.Errorf("cannot apply the status of ApplicationReport %q: %w", key.Published(), err)
	}
	_, err = w.own.note(name, existing, u, w.clock.Now())
	return err
}

func reportAt(key connection.Key) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": fleetv1alpha1.GroupVersion.String(),
		"kind":       "ApplicationReport",
		"metadata":   map[string]any{"namespace": key.Namespace, "name": key.Published().Name},
	}}
}

// ownWrites remembers the result of the last write to each report, so that it is not repeated while the cache is
// behind.
type ownWrites struct {
	mu   sync.Mutex
	last map[mcr.ClusterName]ownWrite
}

type ownWrite struct {
	// at is when the status was last written.
	at time.Time

	// read is the report's version read before the write, empty if there was none, and result the written report. result
	// is nil once it is obsolete.
	read   string
	result *fleetv1alpha1.ApplicationReport

	// unseen reports whether the cache has not shown the report yet.
	unseen bool
}

// note remembers a write and returns the resulting report. A time is that of a status write.
func (o *ownWrites) note(
	name mcr.ClusterName, read *fleetv1alpha1.ApplicationReport, u *unstructured.Unstructured, at time.Time,
) (*fleetv1alpha1.ApplicationReport, error) {
	result := &fleetv1alpha1.ApplicationReport{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, result); err != nil {
		return nil, fmt.Errorf("cannot read ApplicationReport %s/%s: %w", u.GetNamespace(), u.GetName(), err)
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	w := o.last[name]
	w.result = result.DeepCopy()
	if !at.IsZero() {
		w.at = at
	}
	if read == nil {
		w.unseen = true
	} else {
		w.read = read.ResourceVersion
	}
	o.last[name] = w
	return result, nil
}

// read returns the cached report, or nil, updated with our own last write.
func (o *ownWrites) read(name mcr.ClusterName, cached *fleetv1alpha1.ApplicationReport) *fleetv1alpha1.ApplicationReport {
	o.mu.Lock()
	defer o.mu.Unlock()
	w, ok := o.last[name]
	if !ok || w.result == nil {
		return cached
	}
	if cached == nil {
		if w.unseen {
			return w.result.DeepCopy()
		}
		return nil
	}
	w.unseen = false
	if cached.UID != w.result.UID || cached.ResourceVersion != w.read {
		w.result = nil // The cache has shown it, or something newer.
	}
	o.last[name] = w
	if w.result == nil {
		return cached
	}
	return w.result.DeepCopy()
}

// forget drops the result of the last write to a report, and drop also its time.
func (o *ownWrites) forget(name mcr.ClusterName) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if w, ok := o.last[name]; ok {
		o.last[name] = ownWrite{at: w.at}
	}
}

func (o *ownWrites) drop(name mcr.ClusterName) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.last, name)
}

// pause is how long the next write of a report's status has to wait.
func (o *ownWrites) pause(name mcr.ClusterName, now time.Time) time.Duration {
	o.mu.Lock()
	defer o.mu.Unlock()
	return max(o.last[name].at.Add(rollupInterval).Sub(now), 0)
}
