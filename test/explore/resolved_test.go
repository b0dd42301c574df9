// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"encoding/base64"
	"reflect"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	commonv1alpha1 "github.com/masthead-dev/masthead/apis/common/v1alpha1"
	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/condition"
	"github.com/masthead-dev/masthead/pkg/references"
	"github.com/masthead-dev/masthead/test/explore/apiserver"
)

// valueAt returns the text at a path; empty for none. The data of Secrets is decoded.
func valueAt(obj *unstructured.Unstructured, path []string) string {
	value, _ := field(obj, path...).(string)
	if obj != nil && obj.GetKind() == "Secret" {
		decoded, _ := base64.StdEncoding.DecodeString(value)
		return string(decoded)
	}
	return value
}

// source names the source of a reference in a namespace of a cluster.
func (r reference) source(cluster *workload, team string) string {
	return cluster.identifier + key(r.resource, r.namespace(team), r.name).String() + strings.Join(r.from, ".")
}

// sourceChanged records the values of what references lead to, and the end of permissions.
func (c *checker) sourceChanged(cluster *workload, change apiserver.Change) {
	if change.Key.GroupResource == grants {
		c.permitted[cluster.identifier+change.Key.Namespace] = time.Now()
	}
	for _, r := range allReferences() {
		if r.elsewhere || r.follows || r.resource != change.Key.GroupResource || r.name != change.Key.Name {
			continue
		}
		at := r.source(cluster, change.Key.Namespace)
		if c.values[at] == nil {
			c.values[at] = map[string]bool{}
		}
		c.values[at][valueAt(change.New, r.from)] = true
	}
}

// referrerChanged checks a change of a Subnet by Masthead.
func (c *checker) referrerChanged(cluster *workload, change apiserver.Change) {
	if !isAgent(change) {
		return
	}
	c.noticed(cluster, change)
	name := cluster.identifier + " " + change.Key.String()
	if change.Old == nil || change.New == nil || change.New.GetDeletionTimestamp() != nil {
		c.fail("References only fill fields", "%s created or deleted %s", change.Manager, name)
		return
	}
	r := referenceOf(change.Old)
	to := r.to
	if strings.HasPrefix(change.Manager, references.FieldManager+"-status-") {
		to = nil
	} else if !strings.HasPrefix(change.Manager, references.FieldManager+"-hub-") {
		c.fail("References only fill fields", "%s wrote %s", change.Manager, name)
	}
	if !reflect.DeepEqual(unfilled(change.Old, to), unfilled(change.New, to)) {
		c.fail("References only fill fields", "%s made %v of %v", change.Manager, change.New.Object, change.Old.Object)
	}
	if c.unresolved {
		c.fail("References are resolved only where the class says so", "%s wrote %s", change.Manager, name)
	}
	if isAnothers(change.Old) {
		c.fail("References of another object are not resolved here", "%s wrote %s", change.Manager, name)
	}
	if to == nil {
		entry := condition.Entry(change.New, commonv1alpha1.ConditionReferencesResolved)
		if entry["observedGeneration"] != change.New.GetGeneration() {
			c.fail("A condition is about the object that was read", "%s wrote %v about generation %d of %s",
				change.Manager, entry, change.New.GetGeneration(), name)
		}
		return
	}
	before, after := valueAt(change.Old, to), valueAt(change.New, to)
	if before != "" && !r.follows {
		c.fail("A field with a value is left alone", "%s made %q of %q in %s", change.Manager, after, before, name)
	}
	if after == "" || !c.values[r.source(cluster, change.Key.Namespace)][after] {
		c.fail("A value is that of its source", "%s wrote %q into %s, which references %s", change.Manager, after, name, r.what)
	}
	if r.elsewhere && !c.isPermitted(cluster, r.namespace(change.Key.Namespace)) {
		c.fail("A value of another namespace needs its permission", "%s wrote %q into %s", change.Manager, after, name)
	}
	if r.reveals() {
		c.fail("A Secret stays secret", "%s wrote %q into %s", change.Manager, after, name)
	}
}

// reveals reports whether a reference would copy what is secret into a field that is not.
func (r reference) reveals() bool {
	return (r.resource == secrets || slices.Equal(r.from, tokenPath)) && !slices.Equal(r.to, tokenPath)
}

// isPermitted reports whether a namespace permits the other team's references, or did so when they were read.
func (c *checker) isPermitted(cluster *workload, namespace string) bool {
	changed, ever := c.permitted[cluster.identifier+namespace]
	return ever && (cluster.server.Locked(key(grants, namespace, grantName)) != nil || time.Since(changed) < passTime)
}

// isAnothers reports whether the references of an object are a copy of another's.
func isAnothers(obj *unstructured.Unstructured) bool {
	return obj.GetAnnotations()[fleetv1alpha1.ReleasedFromAnnotation] != ""
}

// unfilled returns an object without what Masthead may write: a field, its condition, and what the server keeps.
func unfilled(obj *unstructured.Unstructured, to []string) map[string]any {
	out := obj.DeepCopy()
	for _, name := range []string{"managedFields", "resourceVersion", "generation"} {
		unstructured.RemoveNestedField(out.Object, "metadata", name)
	}
	if to == nil {
		delete(out.Object, "status")
	} else {
		unstructured.RemoveNestedField(out.Object, to...)
	}
	return out.Object
}

// referencesSettled checks what every reference has come to.
func (c *checker) referencesSettled() {
	if c.w.referencesMode() != fleetv1alpha1.ReferencesModeEnabled {
		return
	}
	for _, cluster := range c.w.clusters {
		for _, obj := range cluster.server.List(subnets) {
			if isAnothers(obj) {
				continue
			}
			r := referenceOf(obj)
			name := cluster.identifier + " " + obj.GetNamespace() + "/" + obj.GetName()
			want, shown := resolution(cluster, obj, r), condition.Entry(obj, commonv1alpha1.ConditionReferencesResolved)
			if shown["reason"] != want || shown["observedGeneration"] != obj.GetGeneration() {
				c.fail("A reference is resolved, or says why not", "%s, which references %s, is %s, and says %v of generation %d",
					name, r.what, want, shown, obj.GetGeneration())
			}
			if have, is := valueAt(obj, r.to), valueAt(r.get(cluster, obj.GetNamespace()), r.from); want == commonv1alpha1.ReasonResolved && r.follows && have != is {
				c.fail("A field follows its source", "%s has %q, and its source %q", name, have, is)
			}
		}
	}
}

// emptyFields has users empty their fields, when everything is at rest, if the class does not resolve references.
func (w *world) emptyFields() bool {
	if !w.runs.references || w.referencesMode() == fleetv1alpha1.ReferencesModeEnabled {
		return false
	}
	w.checker.unresolved = true
	emptied := false
	for _, cluster := range w.clusters {
		for _, obj := range cluster.server.List(subnets) {
			p := path(subnets, "v1alpha1", obj.GetNamespace(), obj.GetName())
			spec := map[string]any{"forProvider": map[string]any{"region": nil, "token": nil}}
			emptied = w.patch(cluster.server, "user", p, map[string]any{"spec": spec}) || emptied
		}
	}
	return emptied
}

func (r reference) get(cluster *workload, team string) *unstructured.Unstructured {
	return cluster.server.Get(key(r.resource, r.namespace(team), r.name))
}

// resolution returns what becomes of a reference, as a reason of its condition.
func resolution(cluster *workload, obj *unstructured.Unstructured, r reference) string {
	team := obj.GetNamespace()
	source := r.get(cluster, team)
	switch {
	case !r.follows && valueAt(obj, r.to) != "":
		return commonv1alpha1.ReasonResolved
	case r.elsewhere && cluster.server.Get(key(grants, r.namespace(team), grantName)) == nil:
		return commonv1alpha1.ReasonNotPermitted
	case r.reveals():
		return commonv1alpha1.ReasonSecretNotPermitted
	case isCycle(cluster, obj):
		return commonv1alpha1.ReasonCycle
	case source == nil:
		return commonv1alpha1.ReasonSourceNotFound
	case valueAt(source, r.from) == "":
		return commonv1alpha1.ReasonFieldNotFound
	}
	return commonv1alpha1.ReasonResolved
}

// isCycle reports whether both Subnets of a namespace wait for each other, or follow each other.
func isCycle(cluster *workload, obj *unstructured.Unstructured) bool {
	for _, name := range []string{mainName, followerName} {
		one := cluster.server.Get(key(subnets, obj.GetNamespace(), name))
		if one == nil || isAnothers(one) {
			return false
		}
		r := referenceOf(one)
		if r.resource != subnets || r.reveals() || !r.follows && valueAt(one, r.to) != "" {
			return false
		}
	}
	return true
}
