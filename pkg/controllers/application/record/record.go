// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package record

import (
	"slices"

	"k8s.io/apimachinery/pkg/types"

	appsv1alpha1 "github.com/masthead-dev/masthead/apis/apps/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/controllers/application/definition"
	"github.com/masthead-dev/masthead/pkg/controllers/application/healthcheck"
	"github.com/masthead-dev/masthead/pkg/health"
	"github.com/masthead-dev/masthead/pkg/kindwatch"
)

// A Component is what is kept of an object that is, or was, or says that it is, a component of an Application. It takes
// the place of the object in memory. Which object it is of, and in which version, is in its kindwatch.Entry.
type Component struct {
	// Application is what the annotation names, in the namespace of the object; empty if there is none.
	Application ApplicationKey

	// Labels are those of the object.
	Labels LabelSet

	// Owners are the Applications in its owner references, and References is the number of all of these.
	Owners     []Owner
	References int

	// Controller is the UID of the owner that is the controller of the object; empty if it has none.
	Controller types.UID

	// Deleting is whether it is being deleted, Ignored whether its annotation leaves it out of the health of its
	// Application.
	Deleting, Ignored bool

	Health health.Result
}

// Owner is an owner reference to an Application.
type Owner struct {
	UID types.UID

	// Position is where in the list of owner references it stands.
	Position int
}

var _ kindwatch.Record = &Component{}

// Equal implements kindwatch.Record.
func (r *Component) Equal(other kindwatch.Record) bool {
	o, ok := other.(*Component)
	return ok && r.Application == o.Application && r.Labels == o.Labels && r.References == o.References &&
		r.Controller == o.Controller && r.Deleting == o.Deleting && r.Ignored == o.Ignored && r.Health == o.Health && slices.Equal(r.Owners, o.Owners)
}

// IndexKeys implements kindwatch.Record.
func (r *Component) IndexKeys() []string {
	keys := make([]string, 0, 1+len(r.Owners))
	if r.Application.Name != "" {
		keys = append(keys, AnnotationIndex(r.Application))
	}
	for _, o := range r.Owners {
		if k := OwnerIndex(o.UID); !slices.Contains(keys, k) {
			keys = append(keys, k)
		}
	}
	return keys
}

// Size implements kindwatch.Record.
func (r *Component) Size() int64 {
	const fixed = 208
	size := int64(fixed + len(r.Application.Name) + len(r.Controller) + len(r.Health.Message) + len(r.Health.Reason))
	for _, o := range r.Owners {
		const each = 32
		size += each + int64(len(o.UID))
	}
	return size
}

// OwnedBy returns the owner reference to the Application with this UID, the last one if there are several.
func (r *Component) OwnedBy(uid types.UID) (Owner, bool) {
	for _, o := range slices.Backward(r.Owners) {
		if o.UID == uid {
			return o, true
		}
	}
	return Owner{}, false
}

// ControlledBy is whether the owner with this UID is the controller of the object. Masthead makes no Application the
// controller of a component.
func (r *Component) ControlledBy(uid types.UID) bool {
	return r.Controller != "" && r.Controller == uid
}

// ControlledByAnother is whether the object has a controller that is not the owner with this UID. It is deleted with
// that controller.
func (r *Component) ControlledByAnother(uid types.UID) bool {
	return r.Controller != "" && r.Controller != uid
}

// Markings are what an object bears by which Applications discover it. Records with markings are types of their own:
// most have none, and pay nothing for them.
type Markings struct {
	// Marks are those that somebody looks for.
	Marks []Mark

	// Inventory is that of a Kustomization or a HelmRelease of Flux which is looked for; nil if there is none.
	Inventory *Inventory
}

func (m *Markings) equal(other *Markings) bool {
	return slices.Equal(m.Marks, other.Marks) && m.Inventory.equal(other.Inventory)
}

func (m *Markings) indexKeys() []string {
	keys := make([]string, 0, len(m.Marks))
	for _, k := range m.Marks {
		keys = append(keys, string(k))
	}
	return keys
}

func (m *Markings) size() int64 {
	const fixed, each, entry = 32, 16, 48
	size := int64(fixed + each*len(m.Marks))
	if m.Inventory != nil {
		size += int64(entry + len(m.Inventory.Strange.says))
		for _, e := range m.Inventory.Entries {
			size += int64(entry + len(e.id) + len(e.version))
		}
	}
	return size
}

// markedComponent is what is kept of an object that an Application discovers.
type markedComponent struct {
	Component
	*Markings
}

var _ kindwatch.Record = &markedComponent{}

// Equal implements kindwatch.Record.
func (r *markedComponent) Equal(other kindwatch.Record) bool {
	o, ok := other.(*markedComponent)
	return ok && r.Component.Equal(&o.Component) && r.equal(o.Markings)
}

// IndexKeys implements kindwatch.Record.
func (r *markedComponent) IndexKeys() []string {
	return append(r.Component.IndexKeys(), r.indexKeys()...)
}

// Size implements kindwatch.Record.
func (r *markedComponent) Size() int64 { return r.Component.Size() + r.size() }

// AnnotationIndex is where the objects are found that name an Application.
func AnnotationIndex(key ApplicationKey) string { return "name/" + key.Namespace + "/" + key.Name }

// OwnerIndex is where the objects are found that an Application owns. A new Application of the same name has another
// UID, and owns nothing of what the old one did.
func OwnerIndex(uid types.UID) string { return "uid/" + string(uid) }

// Application is what is kept of an Application: all of it, but for the metadata that means nothing here.
type Application struct {
	// component is what it is for another Application that names the kind Application among its components.
	component *Component

	packed packed
	packer *Packer
}

var _ kindwatch.Record = &Application{}

// application unpacks the Application. It is nil if that cannot be done, which does not happen to what was packed.
func (r *Application) unpacked() *appsv1alpha1.Application {
	app, err := r.packer.unpack(r.packed)
	if err != nil {
		return nil
	}
	return app
}

// Equal implements kindwatch.Record. Labels, annotations and finalizers of an Application mean nothing for itself.
func (r *Application) Equal(other kindwatch.Record) bool {
	o, ok := other.(*Application)
	return ok && r.packed == o.packed && r.component.Equal(o.component)
}

// IndexKeys implements kindwatch.Record.
func (r *Application) IndexKeys() []string { return r.component.IndexKeys() }

// Size implements kindwatch.Record.
func (r *Application) Size() int64 {
	const fixed = 48
	return fixed + int64(len(r.packed)) + r.component.Size()
}

// markedApplication is what is kept of an Application that another one discovers.
type markedApplication struct {
	Application
	*Markings
}

var _ kindwatch.Record = &markedApplication{}

// Equal implements kindwatch.Record.
func (r *markedApplication) Equal(other kindwatch.Record) bool {
	o, ok := other.(*markedApplication)
	return ok && r.Application.Equal(&o.Application) && r.equal(o.Markings)
}

// IndexKeys implements kindwatch.Record.
func (r *markedApplication) IndexKeys() []string {
	return append(r.Application.IndexKeys(), r.indexKeys()...)
}

// Size implements kindwatch.Record.
func (r *markedApplication) Size() int64 { return r.Application.Size() + r.size() }

// Definition is what is kept of a definition, or of the registration of an API group: that something about it
// changed, and for a definition of Applications that is somebody else's what its metadata says.
type Definition struct {
	resourceVersion string
	Seen            *definition.Seen
}

var _ kindwatch.Record = &Definition{}

// Equal implements kindwatch.Record. That a definition is established changes nothing in its metadata but the version.
func (r *Definition) Equal(other kindwatch.Record) bool {
	o, ok := other.(*Definition)
	return ok && r.resourceVersion == o.resourceVersion
}

// IndexKeys implements kindwatch.Record.
func (r *Definition) IndexKeys() []string { return nil }

// Size implements kindwatch.Record.
func (r *Definition) Size() int64 {
	const fixed = 128
	return fixed
}

// Pod is what is kept of the Pod of a health check.
type Pod struct{ healthcheck.Record }

var _ kindwatch.Record = &Pod{}

// Equal implements kindwatch.Record.
func (r *Pod) Equal(other kindwatch.Record) bool {
	o, ok := other.(*Pod)
	return ok && *r == *o
}

// IndexKeys implements kindwatch.Record.
func (r *Pod) IndexKeys() []string { return []string{OwnerIndex(r.Owner)} }

// Size implements kindwatch.Record.
func (r *Pod) Size() int64 {
	const fixed = 256
	return int64(fixed + len(r.Hash) + len(r.Message))
}

// ComponentOf returns what an object is as a component; nil if it is not one.
func ComponentOf(r kindwatch.Record) *Component {
	switch r := r.(type) {
	case *Component:
		return r
	case *markedComponent:
		return &r.Component
	}
	if app := applicationOf(r); app != nil {
		return app.component
	}
	return nil
}

// applicationOf returns what is kept of an Application; nil if the record is of something else.
func applicationOf(r kindwatch.Record) *Application {
	switch r := r.(type) {
	case *Application:
		return r
	case *markedApplication:
		return &r.Application
	}
	return nil
}

// MarkingsOf returns by what an object is discovered; nil if it is not.
func MarkingsOf(r kindwatch.Record) *Markings {
	switch r := r.(type) {
	case *markedComponent:
		return r.Markings
	case *markedApplication:
		return r.Markings
	}
	return nil
}

// ApplicationIn is the Application that a watch has; nil if there is none.
func ApplicationIn(e *kindwatch.Entry) *appsv1alpha1.Application {
	if e == nil {
		return nil
	}
	rec := applicationOf(e.Record)
	if rec == nil {
		return nil
	}
	app := rec.unpacked()
	if app != nil {
		app.ResourceVersion = e.ResourceVersion
	}
	return app
}
