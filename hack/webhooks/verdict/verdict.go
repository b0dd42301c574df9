// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

// Package verdict asks a provider's own admission code about objects. It needs nothing but the standard library, since
// each provider is compiled with the dependencies of its own.
package verdict

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"reflect"
	"slices"
)

// Verdict is what the admission code of a provider does with one object.
type Verdict struct {
	Kind string `json:"kind"`
	Name string `json:"name"`

	// Refused is why the object may not be created, or may not be applied once more. Empty: it may.
	Refused string `json:"refused,omitempty"`

	// Changed are the fields of the object that defaulting overwrites.
	Changed []string `json:"changed,omitempty"`
}

// Webhook is the admission code of one type. W are the warnings of the provider's controller-runtime.
type Webhook[T any, W ~[]string] interface {
	Default(ctx context.Context, obj T) error
	ValidateCreate(ctx context.Context, obj T) (W, error)
	ValidateUpdate(ctx context.Context, was, obj T) (W, error)
}

// Kind asks about an object of one kind.
type Kind func(ctx context.Context, raw []byte) (changed []string, err error)

// For returns the Kind of a type with its admission code.
func For[T any, W ~[]string](newObject func() T, webhook Webhook[T, W]) Kind {
	return func(ctx context.Context, raw []byte) ([]string, error) {
		decode := func() (T, error) {
			obj := newObject()
			if err := json.Unmarshal(raw, obj); err != nil {
				return obj, fmt.Errorf("cannot decode: %w", err)
			}
			return obj, nil
		}
		admit := func() (T, error) {
			obj, err := decode()
			if err != nil {
				return obj, err
			}
			return obj, webhook.Default(ctx, obj)
		}
		sent, err := decode()
		if err != nil {
			return nil, err
		}
		created, err := admit()
		if err != nil {
			return nil, err
		}
		if _, err := webhook.ValidateCreate(ctx, created); err != nil {
			return nil, fmt.Errorf("create: %w", err)
		}
		changed, err := overwritten(raw, sent, created)
		if err != nil {
			return nil, err
		}
		updated, err := admit()
		if err != nil {
			return nil, err
		}
		if _, err := webhook.ValidateUpdate(ctx, created, updated); err != nil {
			return nil, fmt.Errorf("update without a change: %w", err)
		}
		return changed, nil
	}
}

// overwritten returns the paths of what an object was sent with and has otherwise after defaulting. Both are compared
// as they are encoded: what the encoder of the type omits is no change.
func overwritten(raw []byte, before, after any) ([]string, error) {
	var sent map[string]any
	if err := json.Unmarshal(raw, &sent); err != nil {
		return nil, fmt.Errorf("cannot decode: %w", err)
	}
	was, err := encode(before)
	if err != nil {
		return nil, err
	}
	is, err := encode(after)
	if err != nil {
		return nil, err
	}
	var paths []string
	compare("spec", sent["spec"], was["spec"], is["spec"], &paths)
	slices.Sort(paths)
	return paths, nil
}

func encode(obj any) (map[string]any, error) {
	text, err := json.Marshal(obj)
	if err != nil {
		return nil, fmt.Errorf("cannot encode: %w", err)
	}
	var out map[string]any
	if err := json.Unmarshal(text, &out); err != nil {
		return nil, fmt.Errorf("cannot decode: %w", err)
	}
	return out, nil
}

func compare(path string, sent, before, after any, paths *[]string) {
	fields, isObject := sent.(map[string]any)
	if !isObject {
		if !reflect.DeepEqual(before, after) {
			*paths = append(*paths, path)
		}
		return
	}
	was, _ := before.(map[string]any)
	is, _ := after.(map[string]any)
	for field, value := range fields {
		compare(path+"."+field, value, was[field], is[field], paths)
	}
}

// Main reads a list of objects from the standard input, and writes the verdicts about those of these kinds.
func Main(kinds map[string]Kind) {
	if err := run(context.Background(), os.Stdin, os.Stdout, kinds); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, in io.Reader, out io.Writer, kinds map[string]Kind) error {
	var objects []json.RawMessage
	if err := json.NewDecoder(in).Decode(&objects); err != nil {
		return fmt.Errorf("cannot read the objects: %w", err)
	}
	verdicts := []Verdict{}
	for _, raw := range objects {
		var header struct {
			Kind     string `json:"kind"`
			Metadata struct {
				Name string `json:"name"`
			} `json:"metadata"`
		}
		if err := json.Unmarshal(raw, &header); err != nil {
			return fmt.Errorf("cannot read an object: %w", err)
		}
		ask, ok := kinds[header.Kind]
		if !ok {
			continue
		}
		v := Verdict{Kind: header.Kind, Name: header.Metadata.Name}
		var err error
		if v.Changed, err = ask(ctx, raw); err != nil {
			v.Refused = err.Error()
		}
		verdicts = append(verdicts, v)
	}
	if err := json.NewEncoder(out).Encode(verdicts); err != nil {
		return fmt.Errorf("cannot write the verdicts: %w", err)
	}
	return nil
}
