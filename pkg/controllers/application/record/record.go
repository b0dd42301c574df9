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

// A Component is the record of an object that is, was, or claims to be a component of an Application. It replaces the
// object in memory. The object's name and version are in its kindwatch.Entry.
type Component struct {
	// Application is the one that the annotation names, in the object's namespace; empty without annotation.
	Application ApplicationKey

	// Labels are the object's labels.
	Labels LabelSet

	// Owners are the Applications in its owner references, and References is the number of all references.
	Owners     []Owner
	References int

	// Controller is the UID of the object's controller; empty if it has none.
	Controller types.UID

	// Deleting reports whether it is being deleted, Ignored whether its annotation excludes it from its Application's
	// health.
	Deleting, Ignored bool

	// Finished reports whether it is a Job that has completed, and that is deleted after its ttlSecondsAfterFinished.
	Finished bool

	Health health.Result
}

// Owner is an owner reference to an Application.
type Owner struct {
	UID types.UID

	// Position is its index in the list of owner references.
	Position int
}

var _ kindwatch.Record = &Component{}

// Equal implements kindwatch.Record.
func (r *Component) Equal(other kindwatch.Record) bool {
	o, ok := other.(*Component)
	return ok && r.Application == o.Application && r.Labels == o.Labels && r.References == o.References &&
		r.Controller == o.Controller && r.Deleting == o.Deleting && r.Ignored == o.Ignored && r.Finished == o.Finished && r.Health == o.Health &&
		slices.Equal(r.Owners, o.Owners)
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

// ControlledBy reports whether the owner with this UID is the object's controller. Masthead makes no Application the
// controller of a component.
func (r *Component) ControlledBy(uid types.UID) bool {
	return r.Controller != "" && r.Controller == uid
}

// ControlledByAnother reports whether the object has a controller other than the owner with this UID. It is deleted
// with that controller.
func (r *Component) ControlledByAnother(uid types.UID) bool {
	return r.Controller != "" && r.Controller != uid
}

// Markings are the properties by which Applications discover an object. Records with markings have their own types:
// most have none, and save the memory.
type Markings struct {
	// Marks are the wanted ones.
	Marks []Mark

	// Inventory is the wanted inventory of a Kustomization or a HelmRelease of Flux; nil if there is none.
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

// markedComponent is the record of an object that an Application discovers.
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

// AnnotationIndex is the index key of the objects that name an Application.
func AnnotationIndex(key ApplicationKey) string { return "name/" + key.Namespace + "/" + key.Name }

// OwnerIndex is the index key of the objects that an Application owns. A recreated Application has another UID, and
// owns nothing of its predecessor.
func OwnerIndex(uid types.UID) string { return "uid/" + string(uid) }

// Application is the record of an Application: all of it, except for irrelevant metadata.
type Application struct {
	// component is its record as a component of another Application.
	component *Component

	packed packed
	packer *Packer
}

var _ kindwatch.Record = &Application{}

// application unpacks the Application. It is nil on failure, which does not happen to packed data.
func (r *Application) unpacked() *appsv1alpha1.Application {
	app, err := r.packer.unpack(r.packed)
	if err != nil {
		return nil
	}
	return app
}

// Equal implements kindwatch.Record. Labels, annotations and finalizers of an Application do not matter to itself.
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

// markedApplication is the record of an Application that another one discovers.
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

// Definition is the record of a definition, or of the registration of an API group: that it changed and, for a foreign
// definition of Applications, its metadata.
type Definition struct {
	resourceVersion string
	Seen            *definition.Seen
}

var _ kindwatch.Record = &Definition{}

// Equal implements kindwatch.Record. Establishing a definition changes only the version in its metadata.
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

// Pod is the record of the Pod of a health check.
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

// GetComponent returns a record as a Component; nil if it is not one.
func GetComponent(r kindwatch.Record) *Component {
	switch r := r.(type) {
	case *Component:
		return r
	case *markedComponent:
		return &r.Component
	}
	if app := getApplication(r); app != nil {
		return app.component
	}
	return nil
}

// getApplication returns a record as an Application; nil if it is of something else.
func getApplication(r kindwatch.Record) *Application {
	switch r := r.(type) {
	case *Application:
		return r
	case *markedApplication:
		return &r.Application
	}
	return nil
}

// GetMarkings returns the Markings of a record; nil if it has none.
func GetMarkings(r kindwatch.Record) *Markings {
	switch r := r.(type) {
	case *markedComponent:
		return r.Markings
	case *markedApplication:
		return r.Markings
	}
	return nil
}

// ApplicationIn unpacks the Application of a watch's entry; nil if there is none.
func ApplicationIn(e *kindwatch.Entry) *appsv1alpha1.Application {
	if e == nil {
		return nil
	}
	rec := getApplication(e.Record)
	if rec == nil {
		return nil
	}
	app := rec.unpacked()
	if app != nil {
		app.ResourceVersion = e.ResourceVersion
	}
	return app
}
