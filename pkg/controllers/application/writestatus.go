// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package application

import (
	"context"
	"encoding/json"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	appsv1alpha1 "github.com/masthead-dev/masthead/apis/apps/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/condition"
	"github.com/masthead-dev/masthead/pkg/controllers/application/appstatus"
	"github.com/masthead-dev/masthead/pkg/controllers/application/record"
	"github.com/masthead-dev/masthead/pkg/objects"
)

// errChanged says that the Application has changed since the watch showed it, so that nothing was written. A change
// outside the cached fields triggers no event.
var errChanged = fmt.Errorf("the Application has changed meanwhile: %w", condition.PendingError{After: catchUp})

// writeStatus writes the status of the Application, and returns the scope with the result. It writes nothing if the
// status is unchanged. The error is errChanged on a conflict.
func (s *scope) writeStatus(ctx context.Context, status appsv1alpha1.ApplicationStatus) (*scope, error) {
	if appstatus.Equal(s.app.Status, status) {
		return s, nil
	}
	patch, err := statusPatch(s.app, status)
	if err != nil {
		return nil, fmt.Errorf("cannot create a patch for Application %q in cluster %q: %w", s.key, s.w.Name, err)
	}
	ctx, cancel := context.WithTimeout(ctx, s.r.requestTimeout)
	defer cancel()
	now := s.r.clock.Now()
	live, err := s.w.Client.Resource(record.ApplicationKind.GroupVersionResource()).Namespace(s.key.Namespace).
		Patch(ctx, s.key.Name, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: s.r.fieldManagerIn(s.w)}, "status")
	switch {
	case apierrors.IsNotFound(err):
		// The watch will report the deletion.
		return s, nil
	case apierrors.IsConflict(err):
		return nil, errChanged
	case err != nil:
		return nil, fmt.Errorf("cannot patch the status of Application %q in cluster %q: %w", s.key, s.w.Name, err)
	}
	s.r.metrics.wrote(s.w.Name, writeStatus)
	s.w.Watcher.Observe(record.ApplicationKind, s.key, live)
	app, out := *s.app, *s
	app.Status, app.ResourceVersion = status, live.GetResourceVersion()
	if out.app = &app; live.GetUID() == app.UID && live.GetDeletionTimestamp() == nil {
		out.confirmedAt = now
	}
	return &out, nil
}

// statusPatch is the JSON merge patch that sets an Application's status, provided that it has not changed meanwhile: no
// other Application of its name has the same resource version. A UID would be ignored: when the status of a custom
// resource is patched, an API server uses no other metadata than the resource version. The patch holds only changes;
// server-side apply would send the whole status each time.
func statusPatch(app *appsv1alpha1.Application, status appsv1alpha1.ApplicationStatus) ([]byte, error) {
	have, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&app.Status)
	if err != nil {
		return nil, err
	}
	want, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&status)
	if err != nil {
		return nil, err
	}
	return json.Marshal(map[string]any{"metadata": map[string]any{"resourceVersion": app.ResourceVersion}, "status": objects.MergePatch(have, want)})
}
