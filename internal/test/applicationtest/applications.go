// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package applicationtest

import (
	"fmt"
	"slices"
	"strings"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appsv1alpha1 "github.com/masthead-dev/masthead/apis/apps/v1alpha1"
)

// WaitForComponent waits until a status has this entry for a component, as "Installed/Health Reason".
func (f *Fixture) WaitForComponent(app *appsv1alpha1.Application, component, want string) {
	f.T.Helper()
	f.WaitForStatus(app, func(s appsv1alpha1.ApplicationStatus) error {
		if got := FormatComponent(s, component); got != want {
			return fmt.Errorf("component %q: want %q, got %q", component, want, got)
		}
		return nil
	})
}

// WaitForHealth waits until an Application has a health.
func (f *Fixture) WaitForHealth(app *appsv1alpha1.Application, want appsv1alpha1.Health) {
	f.T.Helper()
	f.WaitForStatus(app, func(s appsv1alpha1.ApplicationStatus) error {
		if s.Health != want {
			return fmt.Errorf("want %s, got %s", want, s.Health)
		}
		return nil
	})
}

// CreateDiscovering creates an Application that names nothing and discovers.
func (f *Fixture) CreateDiscovering(
	name string, kinds []appsv1alpha1.DiscoveredKind, sources ...appsv1alpha1.DiscoverySource,
) *appsv1alpha1.Application {
	f.T.Helper()
	return f.CreateApplication(name, nil, func(app *appsv1alpha1.Application) {
		app.Spec.Discover = &appsv1alpha1.Discovery{Sources: sources, Kinds: kinds}
	})
}

// discoveredIn lists the discovered entries of a status: "Kind/namespace/name Health Reason" each.
func discoveredIn(s appsv1alpha1.ApplicationStatus) []string {
	var out []string
	for _, d := range s.Discovered {
		out = append(out, strings.TrimSpace(fmt.Sprintf("%s/%s/%s %s %s", d.Kind, d.Namespace, d.Name, d.Health, d.Reason)))
	}
	slices.Sort(out)
	return out
}

// WaitForDiscovered waits until an Application has discovered just this. "~" in the texts is the namespace of the test.
func (f *Fixture) WaitForDiscovered(app *appsv1alpha1.Application, want ...string) {
	f.T.Helper()
	for i := range want {
		want[i] = strings.ReplaceAll(want[i], "~", f.Namespace)
	}
	slices.Sort(want)
	f.WaitForStatus(app, func(s appsv1alpha1.ApplicationStatus) error {
		if diff := cmp.Diff(want, discoveredIn(s)); diff != "" {
			return fmt.Errorf("-want +got:\n%s", diff)
		}
		return nil
	})
}

// CreateApplication creates an Application that selects the label app with its name.
func (f *Fixture) CreateApplication(
	name string, components map[string]appsv1alpha1.ComponentKind, change ...func(*appsv1alpha1.Application),
) *appsv1alpha1.Application {
	f.T.Helper()
	f.WaitForServed()
	app := &appsv1alpha1.Application{
		ObjectMeta: metav1.ObjectMeta{Namespace: f.Namespace, Name: name},
		Spec: appsv1alpha1.ApplicationSpec{
			Type: "wordpress", Version: "1.0", Components: components,
			Selector: appsv1alpha1.LabelSelector{MatchLabels: map[string]appsv1alpha1.LabelValue{"app": appsv1alpha1.LabelValue(name)}},
		},
	}
	for _, c := range change {
		c(app)
	}
	f.Create(f.Workload, app)
	return app
}

// WaitForStatus waits until check accepts the status of an Application.
func (f *Fixture) WaitForStatus(app *appsv1alpha1.Application, check func(appsv1alpha1.ApplicationStatus) error) {
	f.T.Helper()
	f.Within("the status of "+app.Name, func() error {
		if err := f.Workload.Get(f.Ctx, client.ObjectKeyFromObject(app), app); err != nil {
			return err
		}
		if app.Status.ObservedGeneration != app.Generation {
			return fmt.Errorf("generation %d was not observed", app.Generation)
		}
		if err := check(app.Status); err != nil {
			return fmt.Errorf("%w: %+v", err, app.Status)
		}
		return nil
	})
}

// WaitForInstalled waits until just these are installed.
func (f *Fixture) WaitForInstalled(app *appsv1alpha1.Application, names ...string) {
	f.T.Helper()
	f.WaitForStatus(app, func(s appsv1alpha1.ApplicationStatus) error {
		if !slices.Equal(s.Installed, names) {
			return fmt.Errorf("want %q to be installed", names)
		}
		return nil
	})
}

// WaitForOwned waits until an object is, or is not, owned by an Application.
func (f *Fixture) WaitForOwned(obj client.Object, app *appsv1alpha1.Application, want bool) {
	f.T.Helper()
	f.Within("the owner of "+obj.GetName(), func() error {
		if err := f.Workload.Get(f.Ctx, client.ObjectKeyFromObject(obj), obj); err != nil {
			return err
		}
		if got := IsOwned(obj, app); got != want {
			return fmt.Errorf("owned by %q: want %t, got %t", app.Name, want, got)
		}
		return nil
	})
}

// IsOwned reports whether an Application owns an object.
func IsOwned(obj client.Object, app *appsv1alpha1.Application) bool {
	return slices.ContainsFunc(obj.GetOwnerReferences(), func(ref metav1.OwnerReference) bool { return ref.UID == app.UID })
}

// FormatCondition returns a condition as "Status Reason".
func FormatCondition(s appsv1alpha1.ApplicationStatus, conditionType string) string {
	c := meta.FindStatusCondition(s.Conditions, conditionType)
	if c == nil {
		return ""
	}
	return string(c.Status) + " " + c.Reason
}

// FormatComponent returns what a status says about a component, as "Installed/Health Reason".
func FormatComponent(s appsv1alpha1.ApplicationStatus, name string) string {
	for _, c := range s.Components {
		if c.Name == name {
			return string(c.Installed) + "/" + string(c.Health) + " " + c.Reason
		}
	}
	return ""
}

// Components are components by name, all of one kind.
func Components(kind appsv1alpha1.ComponentKind, names ...string) map[string]appsv1alpha1.ComponentKind {
	out := map[string]appsv1alpha1.ComponentKind{}
	for _, name := range names {
		out[name] = kind
	}
	return out
}

// WaitForOwnedKinds waits until a status lists just these kinds as owned.
func (f *Fixture) WaitForOwnedKinds(app *appsv1alpha1.Application, want ...string) {
	f.T.Helper()
	f.WaitForStatus(app, func(s appsv1alpha1.ApplicationStatus) error {
		var got []string
		for _, k := range s.OwnedKinds {
			got = append(got, k.Kind)
		}
		if !slices.Equal(got, want) {
			return fmt.Errorf("want the kinds %q to be owned, got %q", want, got)
		}
		return nil
	})
}
