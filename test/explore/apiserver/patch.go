// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"encoding/json"
	"fmt"
	"net/http"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"k8s.io/apimachinery/pkg/util/validation/field"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/yaml"
)

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
