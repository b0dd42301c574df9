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
	"github.com/masthead-dev/masthead/pkg/mergepatch"
)

// errChanged says that an Application has changed since the watch showed it, so that nothing was written.
var errChanged = errors.New("the Application has changed meanwhile")

// notWritten is for a status that could not be written. Somebody who was faster is nothing to tell of. That is no event
// if it changed nothing of what is kept of an Application.
func (p *pass) notWritten(err error) {
	if errors.Is(err, errChanged) {
		p.lookAgain(catchUp)
		return
	}
	p.fail(err)
}

// writeStatus gives the Application a status, and goes on with what is there now. It writes nothing if the Application
// has it. The error is errChanged if somebody was faster.
func (p *pass) writeStatus(ctx context.Context, status appsv1alpha1.ApplicationStatus) error {
	if appstatus.Equal(p.app.Status, status) {
		return nil
	}
	patch, err := statusPatch(p.app, status)
	if err != nil {
		return fmt.Errorf("cannot make a patch for Application %q in cluster %q: %w", p.key, p.w.Name, err)
	}
	ctx, cancel := context.WithTimeout(ctx, p.r.requestTimeout)
	defer cancel()
	live, err := p.w.Client.Resource(record.ApplicationKind.GroupVersionResource()).Namespace(p.key.Namespace).
		Patch(ctx, p.key.Name, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: p.r.fieldManagerIn(p.w)}, "status")
	switch {
	case apierrors.IsNotFound(err):
		// The watch will say that it has gone.
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

// statusPatch is the JSON merge patch that gives an Application a status, on condition that the Application has not
// changed meanwhile: no other one of its name has the same resource version, so that none gets the status. A UID would
// be ignored here: an API server takes nothing of the metadata of a custom resource into account when its status is
// patched, but for the resource version. The patch holds what changes and nothing else; server-side apply would send
// the whole status each time.
func statusPatch(app *appsv1alpha1.Application, status appsv1alpha1.ApplicationStatus) ([]byte, error) {
	have, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&app.Status)
	if err != nil {
		return nil, err
	}
	want, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&status)
	if err != nil {
		return nil, err
	}
	return json.Marshal(map[string]any{"metadata": map[string]any{"resourceVersion": app.ResourceVersion}, "status": mergepatch.Between(have, want)})
}
