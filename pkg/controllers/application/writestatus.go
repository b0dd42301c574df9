// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package application

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	appsv1alpha1 "github.com/masthead-dev/masthead/apis/apps/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/controllers/application/appstatus"
	"github.com/masthead-dev/masthead/pkg/controllers/application/record"
	"github.com/masthead-dev/masthead/pkg/objects"
)

// errChanged says that the Application has changed since the watch showed it, so that nothing was written.
var errChanged = errors.New("the Application has changed meanwhile")

// notWritten handles a failed status write. A conflict is not an error; it requeues, because a change outside the
// cached fields triggers no event.
func (p *pass) notWritten(err error) {
	if errors.Is(err, errChanged) {
		p.lookAgain(catchUp)
		return
	}
	p.fail(err)
}

// writeStatus writes the status of the Application, and continues with the result. It writes nothing if the status is
// unchanged. The error is errChanged on a conflict.
func (p *pass) writeStatus(ctx context.Context, status appsv1alpha1.ApplicationStatus) error {
	if appstatus.Equal(p.app.Status, status) {
		return nil
	}
	patch, err := statusPatch(p.app, status)
	if err != nil {
		return fmt.Errorf("cannot create a patch for Application %q in cluster %q: %w", p.key, p.w.Name, err)
	}
	ctx, cancel := context.WithTimeout(ctx, p.r.requestTimeout)
	defer cancel()
	live, err := p.w.Client.Resource(record.ApplicationKind.GroupVersionResource()).Namespace(p.key.Namespace).
		Patch(ctx, p.key.Name, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: p.r.fieldManagerIn(p.w)}, "status")
	switch {
	case apierrors.IsNotFound(err):
		// The watch will report the deletion.
		return nil
	case apierrors.IsConflict(err):
		return errChanged
	case err != nil:
		return fmt.Errorf("cannot patch the status of Application %q in cluster %q: %w", p.key, p.w.Name, err)
	}
	p.r.metrics.wrote(p.w.Name, writeStatus)
	p.w.Watcher.Observe(record.ApplicationKind, p.key, live)
	app := *p.app
	app.Status, app.ResourceVersion = status, live.GetResourceVersion()
	p.app = &app
	return nil
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
