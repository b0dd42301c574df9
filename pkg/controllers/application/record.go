// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package application

import (
	"slices"

	"k8s.io/apimachinery/pkg/types"

	appsv1alpha1 "github.com/masthead-dev/masthead/apis/apps/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/controllers/application/definition"
	"github.com/masthead-dev/masthead/pkg/controllers/application/healthcheck"
	"github.com/masthead-dev/masthead/pkg/health"
	"github.com/masthead-dev/masthead/pkg/kindwatch"
)

// A record is what is kept of an object that is, or was, or says that it is, a component of an Application. It takes
// the place of the object in memory. Which object it is of, and in which version, is in its kindwatch.Entry.
type record struct {
	// application is what the annotation names, in the namespace of the object; empty if there is none.
	application applicationKey

	// labels are those of the object.
	labels labelSet

	// owners are the Applications in its owner references, and references is the number of all of these.
	owners     []owner
	references int

	// controller is the UID of the owner that is the controller of the object; empty if it has none.
	controller types.UID

	// deleting is whether it is being deleted, ignored whether its annotation leaves it out of the health of its
	// Application.
	deleting, ignored bool

	health health.Result
}

// owner is an owner reference to an Application.
type owner struct {
	uid types.UID

	// position is where in the list of owner references it stands.
	position int
}

var _ kindwatch.Record = &record{}

// Equal implements kindwatch.Record.
func (r *record) Equal(other kindwatch.Record) bool {
	o, ok := other.(*record)
	return ok && r.application == o.application && r.labels == o.labels && r.references == o.references &&
		r.controller == o.controller && r.deleting == o.deleting && r.ignored == o.ignored && r.health == o.health && slices.Equal(r.owners, o.owners)
}

// IndexKeys implements kindwatch.Record.
func (r *record) IndexKeys() []string {
	keys := make([]string, 0, 1+len(r.owners))
	if r.application.Name != "" {
		keys = append(keys, annotationIndex(r.application))
	}
	for _, o := range r.owners {
		if k := ownerIndex(o.uid); !slices.Contains(keys, k) {
			keys = append(keys, k)
		}
	}
	return keys
}

// Size implements kindwatch.Record.
func (r *record) Size() int64 {
	const fixed = 208
	size := int64(fixed + len(r.application.Name) + len(r.controller) + len(r.health.Message) + len(r.health.Reason))
	for _, o := range r.owners {
		const each = 32
		size += each + int64(len(o.uid))
	}
	return size
}

// ownedBy returns the owner reference to the Application with this UID, the last one if there are several.
func (r *record) ownedBy(uid types.UID) (owner, bool) {
	for _, o := range slices.Backward(r.owners) {
		if o.uid == uid {
			return o, true
		}
	}
	return owner{}, false
}

// controlledBy is whether the owner with this UID is the controller of the object. Masthead makes no Application the
// controller of a component.
func (r *record) controlledBy(uid types.UID) bool { return r.controller != "" && r.controller == uid }

// controlledByAnother is whether the object has a controller that is not the owner with this UID. It is deleted with
// that controller.
func (r *record) controlledByAnother(uid types.UID) bool {
	return r.controller != "" && r.controller != uid
}

// markings are what an object bears by which Applications discover it. Records with markings are types of their own:
// most have none, and pay nothing for them.
type markings struct {
	// marks are those that somebody looks for.
	marks []mark

	// inventory is that of a Kustomization or a HelmRelease of Flux which is looked for; nil if there is none.
	inventory *inventory
}

func (m *markings) equal(other *markings) bool {
	return slices.Equal(m.marks, other.marks) && m.inventory.equal(other.inventory)
}

func (m *markings) indexKeys() []string {
	keys := make([]string, 0, len(m.marks))
	for _, k := range m.marks {
		keys = append(keys, string(k))
	}
	return keys
}

func (m *markings) size() int64 {
	const fixed, each, entry = 32, 16, 48
	size := int64(fixed + each*len(m.marks))
	if m.inventory != nil {
		size += int64(entry + len(m.inventory.strange.says))
		for _, e := range m.inventory.entries {
			size += int64(entry + len(e.id) + len(e.version))
		}
	}
	return size
}

// markedRecord is what is kept of an object that an Application discovers.
type markedRecord struct {
	record
	*markings
}

var _ kindwatch.Record = &markedRecord{}

// Equal implements kindwatch.Record.
func (r *markedRecord) Equal(other kindwatch.Record) bool {
	o, ok := other.(*markedRecord)
	return ok && r.record.Equal(&o.record) && r.equal(o.markings)
}

// IndexKeys implements kindwatch.Record.
func (r *markedRecord) IndexKeys() []string { return append(r.record.IndexKeys(), r.indexKeys()...) }

// Size implements kindwatch.Record.
func (r *markedRecord) Size() int64 { return r.record.Size() + r.size() }

// annotationIndex is where the objects are found that name an Application.
func annotationIndex(key applicationKey) string { return "name/" + key.Namespace + "/" + key.Name }

// ownerIndex is where the objects are found that an Application owns. A new Application of the same name has another
// UID, and owns nothing of what the old one did.
func ownerIndex(uid types.UID) string { return "uid/" + string(uid) }

// applicationRecord is what is kept of an Application: all of it, but for the metadata that means nothing here.
type applicationRecord struct {
	// component is what it is for another Application that names the kind Application among its components.
	component *record

	packed packed
	packer *packer
}

var _ kindwatch.Record = &applicationRecord{}

// application unpacks the Application. It is nil if that cannot be done, which does not happen to what was packed.
func (r *applicationRecord) application() *appsv1alpha1.Application {
	app, err := r.packer.unpack(r.packed)
	if err != nil {
		return nil
	}
	return app
}

// Equal implements kindwatch.Record. Labels, annotations and finalizers of an Application mean nothing for itself.
func (r *applicationRecord) Equal(other kindwatch.Record) bool {
	o, ok := other.(*applicationRecord)
	return ok && r.packed == o.packed && r.component.Equal(o.component)
}

// IndexKeys implements kindwatch.Record.
func (r *applicationRecord) IndexKeys() []string { return r.component.IndexKeys() }

// Size implements kindwatch.Record.
func (r *applicationRecord) Size() int64 {
	const fixed = 48
	return fixed + int64(len(r.packed)) + r.component.Size()
}

// markedApplicationRecord is what is kept of an Application that another one discovers.
type markedApplicationRecord struct {
	applicationRecord
	*markings
}

var _ kindwatch.Record = &markedApplicationRecord{}

// Equal implements kindwatch.Record.
func (r *markedApplicationRecord) Equal(other kindwatch.Record) bool {
	o, ok := other.(*markedApplicationRecord)
	return ok && r.applicationRecord.Equal(&o.applicationRecord) && r.equal(o.markings)
}

// IndexKeys implements kindwatch.Record.
func (r *markedApplicationRecord) IndexKeys() []string {
	return append(r.applicationRecord.IndexKeys(), r.indexKeys()...)
}

// Size implements kindwatch.Record.
func (r *markedApplicationRecord) Size() int64 { return r.applicationRecord.Size() + r.size() }

// definitionRecord is what is kept of a definition, or of the registration of an API group: that something about it
// changed, and for a definition of Applications that is somebody else's what its metadata says.
type definitionRecord struct {
	resourceVersion string
	seen            *definition.Seen
}

var _ kindwatch.Record = &definitionRecord{}

// Equal implements kindwatch.Record. That a definition is established changes nothing in its metadata but the version.
func (r *definitionRecord) Equal(other kindwatch.Record) bool {
	o, ok := other.(*definitionRecord)
	return ok && r.resourceVersion == o.resourceVersion
}

// IndexKeys implements kindwatch.Record.
func (r *definitionRecord) IndexKeys() []string { return nil }

// Size implements kindwatch.Record.
func (r *definitionRecord) Size() int64 {
	const fixed = 128
	return fixed
}

// keptPod is what is kept of the Pod of a health check.
type keptPod struct{ healthcheck.Record }

var _ kindwatch.Record = &keptPod{}

// Equal implements kindwatch.Record.
func (r *keptPod) Equal(other kindwatch.Record) bool {
	o, ok := other.(*keptPod)
	return ok && *r == *o
}

// IndexKeys implements kindwatch.Record.
func (r *keptPod) IndexKeys() []string { return []string{ownerIndex(r.Owner)} }

// Size implements kindwatch.Record.
func (r *keptPod) Size() int64 {
	const fixed = 256
	return int64(fixed + len(r.Hash) + len(r.Message))
}

// componentOf returns what an object is as a component; nil if it is not one.
func componentOf(r kindwatch.Record) *record {
	switch r := r.(type) {
	case *record:
		return r
	case *markedRecord:
		return &r.record
	}
	if app := applicationRecordOf(r); app != nil {
		return app.component
	}
	return nil
}

// applicationRecordOf returns what is kept of an Application; nil if the record is of something else.
func applicationRecordOf(r kindwatch.Record) *applicationRecord {
	switch r := r.(type) {
	case *applicationRecord:
		return r
	case *markedApplicationRecord:
		return &r.applicationRecord
	}
	return nil
}

// markingsOf returns by what an object is discovered; nil if it is not.
func markingsOf(r kindwatch.Record) *markings {
	switch r := r.(type) {
	case *markedRecord:
		return r.markings
	case *markedApplicationRecord:
		return r.markings
	}
	return nil
}

// applicationIn is the Application that a watch has; nil if there is none.
func applicationIn(e *kindwatch.Entry) *appsv1alpha1.Application {
	if e == nil {
		return nil
	}
	rec := applicationRecordOf(e.Record)
	if rec == nil {
		return nil
	}
	app := rec.application()
	if app != nil {
		app.ResourceVersion = e.ResourceVersion
	}
	return app
}
