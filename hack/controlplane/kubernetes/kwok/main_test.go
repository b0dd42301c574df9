// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"reflect"
	"testing"
	_ "unsafe" // For go:linkname.

	"github.com/google/cel-go/common/types"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/kwok/pkg/apis/internalversion"
	"sigs.k8s.io/kwok/pkg/utils/lifecycle"
)

// The maps of easycel that have no lock. Each is written when a type is not in it.
//
//go:linkname typeValueMap github.com/wzshiming/easycel.typeValueMap
var typeValueMap map[reflect.Type]*types.Type

//go:linkname typeTraitMap github.com/wzshiming/easycel.typeTraitMap
var typeTraitMap map[reflect.Type]int

//go:linkname structFieldMap github.com/wzshiming/easycel.structFieldMap
var structFieldMap map[string]map[reflect.Type]map[string]int

//go:linkname structFields github.com/wzshiming/easycel.structFields
var structFields map[string]map[reflect.Type][]string

// entries counts what is in the maps.
func entries() int {
	n := len(typeValueMap) + len(typeTraitMap)
	for _, of := range structFieldMap {
		n += len(of)
	}
	for _, of := range structFields {
		n += len(of)
	}
	return n
}

// That two stages write to the maps at the same time is a matter of luck. That none writes is not.
func TestStagesOnlyReadTypes(t *testing.T) {
	if err := fillTypes(); err != nil {
		t.Fatal(err)
	}
	filled := entries()
	if filled == 0 {
		t.Fatal("Nothing is in the maps: nothing was filled in, or easycel has changed and this test looks in the wrong place.")
	}
	for _, object := range []any{&corev1.Node{}, &corev1.Pod{}} {
		stage := &internalversion.Stage{Spec: internalversion.StageSpec{Selector: &internalversion.StageSelector{}}}
		stages, err := lifecycle.NewLifecycle([]*internalversion.Stage{stage})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := stages.Match(t.Context(), &lifecycle.Event{Data: object}); err != nil {
			t.Errorf("A stage for a %T: %v", object, err)
		}
		if added := entries() - filled; added != 0 {
			t.Errorf("A stage for a %T wrote %d types beside other stages.", object, added)
		}
	}
}
