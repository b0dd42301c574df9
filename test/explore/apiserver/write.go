// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// decode parses the object of a request.
func (c *call) decode(body []byte) (*unstructured.Unstructured, error) {
	obj := &unstructured.Unstructured{}
	if err := obj.UnmarshalJSON(body); err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	return obj, c.identify(obj)
}

// identify checks that an object is the one that the path names, and completes its name and namespace.
func (c *call) identify(obj *unstructured.Unstructured) error {
	if obj.GroupVersionKind() != c.kind.gvk {
		return apierrors.NewBadRequest(fmt.Sprintf("%s in a request for %s", obj.GroupVersionKind(), c.kind.gvk))
	}
	if c.kind.namespaced && obj.GetNamespace() == "" {
		obj.SetNamespace(c.namespace)
	}
	if obj.GetNamespace() != c.namespace {
		return apierrors.NewBadRequest("the namespace of the provided object does not match the namespace sent on the request")
	}
	if c.name != "" && obj.GetName() != c.name {
		return apierrors.NewBadRequest(fmt.Sprintf("the name of the object (%s) does not match the name on the URL (%s)", obj.GetName(), c.name))
	}
	return nil
}

func (s *Server) create(c *call, body []byte) (*unstructured.Unstructured, error) {
	obj, err := c.decode(body)
	if err != nil {
		return nil, err
	}
	if obj.GetName() == "" && obj.GetGenerateName() != "" {
		obj.SetName(obj.GetGenerateName() + rand.String(5))
	}
	c.name = obj.GetName()
	c.kind.decoded(obj)
	return s.insert(c, c.kind.managers[c.subresource].UpdateNoErrors(c.empty(), obj, c.manager()))
}

// empty is the object before its creation.
func (c *call) empty() *unstructured.Unstructured {
	obj := &unstructured.Unstructured{}
	obj.SetGroupVersionKind(c.kind.gvk)
	return obj
}

// insert stores a new object.
func (s *Server) insert(c *call, made any) (*unstructured.Unstructured, error) {
	obj := made.(*unstructured.Unstructured) //nolint:forcetypeassert // Field managers return what they get.
	definition := s.objects[Key{definitions, types.NamespacedName{Name: c.kind.definition}}]
	if definition != nil && definition.GetDeletionTimestamp() != nil {
		return nil, apierrors.NewForbidden(c.kind.groupResource(), c.name,
			errors.New("create not allowed while custom resource definition is terminating"))
	}
	if err := s.checkNamespace(c); err != nil {
		return nil, err
	}
	if c.kind.status {
		delete(obj.Object, "status")
	}
	version := obj.GetResourceVersion()
	obj.SetResourceVersion("")
	obj.SetDeletionTimestamp(nil)
	obj.SetDeletionGracePeriodSeconds(nil)
	obj.SetCreationTimestamp(s.seconds())
	obj.SetUID(s.newUID())
	if c.kind.generations {
		obj.SetGeneration(1)
	}
	c.kind.normalize(obj)
	s.initialize(c.kind, obj)
	errs := validation.ValidateObjectMetaAccessor(obj, c.kind.namespaced, validation.NameIsDNSSubdomain, field.NewPath("metadata"))
	if errs = append(errs, c.kind.validate(c.Context(), obj, nil)...); len(errs) > 0 {
		return nil, apierrors.NewInvalid(c.kind.gvk.GroupKind(), obj.GetName(), errs)
	}
	switch {
	case c.Method == http.MethodPost && !c.dryRun() && version != "" && version != "0":
		return nil, errors.New("resourceVersion should not be set on objects to be created")
	case s.objects[c.key()] != nil:
		return nil, apierrors.NewAlreadyExists(c.kind.groupResource(), c.name)
	}
	if c.dryRun() {
		obj.SetResourceVersion(version)
	}
	return obj, s.commit(Change{Key: c.key(), New: obj, Manager: c.manager(), DryRun: c.dryRun()})
}

// initialize sets what the server itself sets in new objects of some kinds.
func (s *Server) initialize(k *kind, obj *unstructured.Unstructured) {
	if k.gvk.Kind != "Namespace" || k.gvk.Group != "" {
		return
	}
	l := obj.GetLabels()
	if l == nil {
		l = map[string]string{}
	}
	l[corev1.LabelMetadataName] = obj.GetName()
	obj.SetLabels(l)
	obj.Object["spec"] = map[string]any{"finalizers": []any{string(corev1.FinalizerKubernetes)}}
	obj.Object["status"] = map[string]any{"phase": string(corev1.NamespaceActive)}
}

func (s *Server) newUID() types.UID {
	s.created++
	return types.UID(fmt.Sprintf("%s-%d", s.name, s.created))
}

// seconds is the time in the resolution of the API.
func (s *Server) seconds() metav1.Time { return metav1.NewTime(s.now().UTC().Truncate(time.Second)) }

func (s *Server) checkNamespace(c *call) error {
	if !c.kind.namespaced {
		return nil
	}
	namespace := s.objects[Key{namespaces, types.NamespacedName{Name: c.namespace}}]
	switch {
	case namespace == nil:
		return apierrors.NewNotFound(namespaces, c.namespace)
	case namespace.GetDeletionTimestamp() != nil:
		err := apierrors.NewForbidden(c.kind.groupResource(), c.name,
			fmt.Errorf("unable to create new content in namespace %s because it is being terminated", c.namespace))
		err.ErrStatus.Details.Causes = append(err.ErrStatus.Details.Causes, metav1.StatusCause{
			Type: corev1.NamespaceTerminatingCause, Field: "metadata.namespace",
			Message: fmt.Sprintf("namespace %s is being terminated", c.namespace),
		})
		return err
	}
	return nil
}

func (s *Server) replace(c *call, body []byte) (*unstructured.Unstructured, error) {
	obj, err := c.decode(body)
	if err != nil {
		return nil, err
	}
	old := s.objects[c.key()]
	if old == nil {
		return nil, apierrors.NewNotFound(c.kind.groupResource(), c.name)
	}
	if uid := obj.GetUID(); uid != "" && uid != old.GetUID() {
		return nil, apierrors.NewConflict(c.kind.groupResource(), c.name, fmt.Errorf(
			"precondition failed: UID in precondition: %s, UID in object meta: %s", uid, old.GetUID()))
	}
	c.kind.decoded(obj)
	return s.update(c, old, c.kind.managers[c.subresource].UpdateNoErrors(old.DeepCopy(), obj, c.manager()))
}

// update stores a new state of an object, or removes the object if it was only waiting for its last finalizer.
func (s *Server) update(c *call, old *unstructured.Unstructured, made any) (*unstructured.Unstructured, error) {
	obj := made.(*unstructured.Unstructured) //nolint:forcetypeassert // Field managers return what they get.
	switch rv := obj.GetResourceVersion(); {
	case (rv == "" || rv == "0") && !c.kind.unconditional:
		kind := schema.GroupKind{Group: c.kind.gvk.Group, Kind: c.kind.resource}
		return nil, apierrors.NewInvalid(kind, c.name, field.ErrorList{field.Invalid(
			field.NewPath("metadata", "resourceVersion"), 0, "must be specified for an update")})
	case rv == "" || rv == "0":
		obj.SetResourceVersion(old.GetResourceVersion())
	case rv != old.GetResourceVersion():
		return nil, apierrors.NewConflict(c.kind.groupResource(), c.name,
			errors.New("the object has been modified; please apply your changes to the latest version and try again"))
	}
	c.prepareUpdate(obj, old)
	errs := validation.ValidateObjectMetaAccessorUpdate(obj, old, field.NewPath("metadata"))
	errs = append(errs, validation.ValidateObjectMetaAccessor(obj, c.kind.namespaced, validation.NameIsDNSSubdomain, field.NewPath("metadata"))...)
	if errs = append(errs, c.kind.validate(c.Context(), obj, old)...); len(errs) > 0 {
		return nil, apierrors.NewInvalid(c.kind.gvk.GroupKind(), obj.GetName(), errs)
	}
	if isSame(old, obj) {
		return old, nil
	}
	change := Change{Key: c.key(), Old: old, New: obj, Manager: c.manager(), DryRun: c.dryRun()}
	if obj.GetDeletionTimestamp() != nil && len(obj.GetFinalizers()) == 0 && c.kind.gvk.Kind != "Namespace" {
		change.New = nil
		return obj, s.commit(change)
	}
	return obj, s.commit(change)
}

// prepareUpdate keeps what a request may not change.
func (c *call) prepareUpdate(obj, old *unstructured.Unstructured) {
	if c.subresource == "status" {
		status, set := obj.Object["status"]
		fields := obj.GetManagedFields()
		obj.Object = old.DeepCopy().Object
		obj.SetManagedFields(fields)
		delete(obj.Object, "status")
		if set {
			obj.Object["status"] = status
		}
		return
	}
	if c.kind.status {
		delete(obj.Object, "status")
		if status, ok := old.Object["status"]; ok {
			obj.Object["status"] = status
		}
	}
	if obj.GetUID() == "" {
		obj.SetUID(old.GetUID())
	}
	if created := obj.GetCreationTimestamp(); created.IsZero() {
		obj.SetCreationTimestamp(old.GetCreationTimestamp())
	}
	if obj.GetDeletionTimestamp() == nil {
		obj.SetDeletionTimestamp(old.GetDeletionTimestamp())
	}
	if obj.GetDeletionGracePeriodSeconds() == nil {
		obj.SetDeletionGracePeriodSeconds(old.GetDeletionGracePeriodSeconds())
	}
	obj.SetGeneration(old.GetGeneration())
	if c.kind.generations && !equality.Semantic.DeepEqual(content(obj), content(old)) {
		obj.SetGeneration(old.GetGeneration() + 1)
	}
}

// content is everything but metadata.
func content(obj *unstructured.Unstructured) map[string]any {
	out := map[string]any{}
	for k, v := range obj.Object {
		if k != "metadata" {
			out[k] = v
		}
	}
	return out
}

// isSame reports whether nothing but times of managed fields differs.
func isSame(a, b *unstructured.Unstructured) bool {
	fieldsA, fieldsB := a.GetManagedFields(), b.GetManagedFields()
	if len(fieldsA) != len(fieldsB) {
		return false
	}
	for i := range fieldsA {
		fieldsA[i].Time, fieldsB[i].Time = nil, nil
	}
	return equality.Semantic.DeepEqual(fieldsA, fieldsB) && equality.Semantic.DeepEqual(stable(a), stable(b))
}

func stable(obj *unstructured.Unstructured) map[string]any {
	out := content(obj)
	meta, _ := obj.Object["metadata"].(map[string]any)
	for k, v := range meta {
		if k != "managedFields" {
			out["metadata."+k] = v
		}
	}
	return out
}

// commit stores a change, unless it is refused or a dry run.
func (s *Server) commit(change Change) error {
	if s.Admit != nil {
		if err := s.Admit(change); err != nil {
			return err
		}
	}
	if change.DryRun {
		return nil
	}
	s.store(change)
	return nil
}

// store stores a change and reports it.
func (s *Server) store(change Change) {
	s.version++
	change.version = s.version
	if change.New != nil {
		change.New.SetResourceVersion(strconv.FormatInt(s.version, 10))
		s.objects[change.Key] = change.New
	} else {
		delete(s.objects, change.Key)
	}
	if change.Key.GroupResource == definitions {
		s.define(change)
	}
	s.log = append(s.log, change)
	for _, w := range s.watches {
		w.note(change)
	}
	if s.Observe != nil {
		s.Observe(change)
	}
}
