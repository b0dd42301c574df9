// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package application

import (
	"strings"
	"sync"

	appsv1alpha1 "github.com/masthead-dev/masthead/apis/apps/v1alpha1"
)

// Bounds of what texts keep, whoever wrote it: a hundred KiB for a cluster.
const (
	maxTexts    = 1024
	maxTextSize = 96
)

// texts hold once what many Applications of a cluster say: kinds, reasons, the usual messages. Each Application that arrives has strings
// of its own, which together are a third of what is kept of it. The zero value works.
type texts struct {
	mu    sync.Mutex
	known map[string]string
}

// share returns a text that is equal to one, and is shared. When there are too many, what was shared until then is forgotten, not
// what follows: a cluster full of texts that nobody repeats costs the same as any other.
func (t *texts) share(text string) string {
	if text == "" || len(text) > maxTextSize {
		return text
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if shared, ok := t.known[text]; ok {
		return shared
	}
	if t.known == nil || len(t.known) >= maxTexts {
		t.known = map[string]string{}
	}
	// A part of a long text would keep the whole of it in memory.
	text = strings.Clone(text)
	t.known[text] = text
	return text
}

// shared makes each of some texts one that is shared.
func shared[S ~string](t *texts, fields ...*S) {
	for _, field := range fields {
		*field = S(t.share(string(*field)))
	}
}

// shareApplication shares the texts of an Application that others are likely to have as well. It changes it, and nothing about what it says.
func (t *texts) shareApplication(app *appsv1alpha1.Application) {
	shared(t, &app.Kind, &app.APIVersion, &app.Namespace, &app.Spec.Type, &app.Spec.Version)
	components := make(map[string]appsv1alpha1.ComponentKind, len(app.Spec.Components))
	for name, kind := range app.Spec.Components {
		shared(t, &kind.Group, &kind.Version, &kind.Kind)
		components[t.share(name)] = kind
	}
	if app.Spec.Components != nil {
		app.Spec.Components = components
	}
	t.shareStatus(&app.Status)
}

func (t *texts) shareStatus(status *appsv1alpha1.ApplicationStatus) {
	shared(t, &status.Ready)
	shared(t, &status.Health)
	shared(t, &status.ComponentsInstalled, &status.Message)
	for i := range status.Installed {
		shared(t, &status.Installed[i])
	}
	for i := range status.Conditions {
		c := &status.Conditions[i]
		shared(t, &c.Type, &c.Reason, &c.Message)
		shared(t, &c.Status)
	}
	for i := range status.Components {
		c := &status.Components[i]
		shared(t, &c.Name, &c.Group, &c.Version, &c.Kind, &c.Reason, &c.Message)
		shared(t, &c.Installed)
		shared(t, &c.Health)
	}
	for i := range status.Dependencies {
		d := &status.Dependencies[i]
		shared(t, &d.Name)
		shared(t, &d.Installed, &d.Ready)
		shared(t, &d.Health)
	}
}
