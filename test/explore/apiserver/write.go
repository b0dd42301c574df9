// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"time"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"k8s.io/apimachinery/pkg/util/validation/field"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/yaml"
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
	if errs = append(errs, c.kind.validate(obj, nil)...); len(errs) > 0 {
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

// patch executes a patch of any type, and returns whether it created the object.
func (s *Server) patch(c *call, body []byte) (*unstructured.Unstructured, bool, error) {
	old := s.objects[c.key()]
	if types.PatchType(c.Header.Get("Content-Type")) == types.ApplyPatchType {
		obj, err := s.apply(c, old, body)
		return obj, old == nil, err
	}
	if old == nil {
		return nil, false, apierrors.NewNotFound(c.kind.groupResource(), c.name)
	}
	patched, err := c.patched(old, body)
	if err != nil {
		return nil, false, err
	}
	obj := &unstructured.Unstructured{}
	if err := obj.UnmarshalJSON(patched); err != nil {
		return nil, false, apierrors.NewBadRequest(err.Error())
	}
	if err := c.identify(obj); err != nil {
		return nil, false, err
	}
	c.kind.decoded(obj)
	obj, err = s.update(c, old, c.kind.managers[c.subresource].UpdateNoErrors(old.DeepCopy(), obj, c.manager()))
	return obj, false, err
}

func (c *call) patched(old *unstructured.Unstructured, body []byte) ([]byte, error) {
	before, err := old.MarshalJSON()
	if err != nil {
		return nil, err
	}
	switch t := types.PatchType(c.Header.Get("Content-Type")); t {
	case types.JSONPatchType:
		p, err := jsonpatch.DecodePatch(body)
		if err != nil {
			return nil, apierrors.NewBadRequest(err.Error())
		}
		after, err := p.Apply(before)
		if err != nil {
			return nil, apierrors.NewGenericServerResponse(http.StatusUnprocessableEntity, "", schema.GroupResource{}, "", err.Error(), 0, false)
		}
		return after, nil
	case types.MergePatchType:
		after, err := jsonpatch.MergePatch(before, body)
		if err != nil {
			return nil, apierrors.NewBadRequest(err.Error())
		}
		return after, nil
	case types.StrategicMergePatchType:
		typed, err := clientgoscheme.Scheme.New(c.kind.gvk)
		if err != nil {
			return nil, unsupported(t)
		}
		after, err := strategicpatch.StrategicMergePatch(before, body, typed)
		if err != nil {
			return nil, apierrors.NewBadRequest(err.Error())
		}
		return after, nil
	default:
		return nil, unsupported(t)
	}
}

func unsupported(t types.PatchType) error {
	return apierrors.NewGenericServerResponse(http.StatusUnsupportedMediaType, "", schema.GroupResource{}, "",
		fmt.Sprintf("the body of the request was in an unknown format - %s", t), 0, false)
}

// apply executes a server-side apply.
func (s *Server) apply(c *call, old *unstructured.Unstructured, body []byte) (*unstructured.Unstructured, error) {
	if c.URL.Query().Get("fieldManager") == "" {
		return nil, apierrors.NewInvalid(schema.GroupKind{Group: "meta.k8s.io", Kind: "PatchOptions"}, "",
			field.ErrorList{field.Required(field.NewPath("fieldManager"), "is required for apply patch")})
	}
	intent := &unstructured.Unstructured{}
	if err := yaml.Unmarshal(body, &intent.Object); err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	encoded, err := json.Marshal(intent.Object)
	if err != nil {
		return nil, err
	}
	if err := intent.UnmarshalJSON(encoded); err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	live := c.empty()
	if old != nil {
		live = old.DeepCopy()
	} else if c.subresource != "" {
		return nil, apierrors.NewNotFound(c.kind.groupResource(), c.name)
	}
	made, err := c.kind.managers[c.subresource].Apply(live, intent, c.manager(), c.URL.Query().Get("force") == "true")
	if err != nil {
		return nil, err
	}
	obj := made.(*unstructured.Unstructured) //nolint:forcetypeassert // Field managers return what they get.
	if err := c.identify(obj); err != nil {
		return nil, err
	}
	if old != nil {
		c.kind.normalize(obj)
		return s.update(c, old, obj)
	}
	if uid := obj.GetUID(); uid != "" {
		return nil, apierrors.NewConflict(c.kind.groupResource(), c.name, fmt.Errorf(
			"uid mismatch: the provided object specified uid %s, and no existing object was found", uid))
	}
	return s.insert(c, obj)
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
	if errs = append(errs, c.kind.validate(obj, old)...); len(errs) > 0 {
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

func (s *Server) delete(c *call, body []byte) (int, any, error) {
	options := metav1.DeleteOptions{}
	if len(body) > 0 {
		if err := json.Unmarshal(body, &options); err != nil {
			return 0, nil, apierrors.NewBadRequest(err.Error())
		}
	}
	old := s.objects[c.key()]
	if old == nil {
		return 0, nil, apierrors.NewNotFound(c.kind.groupResource(), c.name)
	}
	if err := checkPreconditions(c.key(), options.Preconditions, old); err != nil {
		return 0, nil, err
	}
	dryRun := c.dryRun() || slices.Contains(options.DryRun, metav1.DryRunAll)
	obj := s.marked(c.kind, old, options.PropagationPolicy)
	change := Change{Key: c.key(), Old: old, Manager: c.manager(), DryRun: dryRun}
	if waits(obj) {
		if equality.Semantic.DeepEqual(obj.Object, old.Object) {
			return http.StatusOK, c.shown(old), nil
		}
		change.New = obj
		return http.StatusOK, c.shown(obj), s.commit(change)
	}
	return http.StatusOK, metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusSuccess,
		Details: &metav1.StatusDetails{Name: c.name, Group: c.kind.gvk.Group, Kind: c.kind.resource, UID: old.GetUID()},
	}, s.commit(change)
}

// waits reports whether an object that is being deleted stays for now.
func waits(obj *unstructured.Unstructured) bool {
	finalizers, _, _ := unstructured.NestedSlice(obj.Object, "spec", "finalizers")
	return len(obj.GetFinalizers()) > 0 || obj.GetKind() == "Namespace" && len(finalizers) > 0
}

func checkPreconditions(key Key, p *metav1.Preconditions, obj *unstructured.Unstructured) error {
	switch {
	case p == nil:
		return nil
	case p.UID != nil && *p.UID != obj.GetUID():
		return apierrors.NewConflict(key.GroupResource, key.Name, fmt.Errorf(
			"the UID in the precondition (%s) does not match the UID in record (%s)", *p.UID, obj.GetUID()))
	case p.ResourceVersion != nil && *p.ResourceVersion != obj.GetResourceVersion():
		return apierrors.NewConflict(key.GroupResource, key.Name, fmt.Errorf(
			"the ResourceVersion in the precondition (%s) does not match the ResourceVersion in record (%s)",
			*p.ResourceVersion, obj.GetResourceVersion()))
	}
	return nil
}

// marked returns an object as a deletion leaves it, if it has to wait for anything.
func (s *Server) marked(k *kind, old *unstructured.Unstructured, policy *metav1.DeletionPropagation) *unstructured.Unstructured {
	obj := old.DeepCopy()
	if policy != nil {
		finalizers := slices.DeleteFunc(obj.GetFinalizers(), func(f string) bool {
			return f == metav1.FinalizerDeleteDependents || f == metav1.FinalizerOrphanDependents
		})
		switch *policy {
		case metav1.DeletePropagationForeground:
			finalizers = append(finalizers, metav1.FinalizerDeleteDependents)
		case metav1.DeletePropagationOrphan:
			finalizers = append(finalizers, metav1.FinalizerOrphanDependents)
		case metav1.DeletePropagationBackground:
		}
		obj.SetFinalizers(finalizers)
	}
	if !waits(obj) || obj.GetDeletionTimestamp() != nil {
		return obj
	}
	now := s.seconds()
	obj.SetDeletionTimestamp(&now)
	if k.gvk.Kind == "Namespace" && k.gvk.Group == "" {
		_ = unstructured.SetNestedField(obj.Object, string(corev1.NamespaceTerminating), "status", "phase")
		return obj
	}
	obj.SetDeletionGracePeriodSeconds(new(int64))
	if obj.GetGeneration() > 0 {
		obj.SetGeneration(obj.GetGeneration() + 1)
	}
	return obj
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
