// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package references

import (
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"math"
	"unicode/utf8"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Bounds of one value. All values filled into one object have at most as many bytes together: objects are kept while
// they wait or follow, and a dashboard or a bundle of certificates fits.
const (
	maxValueBytes = 256 << 10
	maxValueNodes = 4096
	maxValueDepth = 32

	// maxExpressionInput is the maximum size in bytes of all variables of an expression together, each counted as often as
	// the expression uses variables: about the largest input of one function.
	maxExpressionInput = 32 << 10

	// maxExact is the first whole number after which doubles leave out some.
	maxExact = 1 << 53

	// maxReadBytes is the approximate maximum size in bytes of all objects kept while the references of one object are
	// resolved.
	maxReadBytes = 16 << 20
)

// errNotText is the error of binary data.
var errNotText = errors.New("it is not UTF-8 text") //nolint:gochecknoglobals // A constant.

// binary stands for data that is not text.
type binary struct{}

// size measures a JSON value in bytes, approximately, and refuses values that are too large or not JSON.
func size(value any) (int, error) {
	m := measure{}
	if err := m.add(value, 0); err != nil {
		return 0, err
	}
	return m.bytes, nil
}

// inputSize is the approximate time and memory that a value costs in an expression: empty fields and elements count,
// too.
func inputSize(value any) (int, error) {
	m := measure{}
	if err := m.add(value, 0); err != nil {
		return 0, err
	}
	return m.bytes + 8*m.nodes, nil
}

// kept returns the approximate size in bytes of an object in memory, or more than most if it exceeds that.
func kept(value any, most int) int {
	const overhead = 64 // Of a field or an element: an interface, a header and a place in a map.
	n := overhead
	switch v := value.(type) {
	case string:
		n += len(v)
	case []any:
		for _, element := range v {
			if n += kept(element, most-n); n > most {
				return n
			}
		}
	case map[string]any:
		for key, field := range v {
			n += len(key)
			if n += kept(field, most-n); n > most {
				return n
			}
		}
	}
	return n
}

type measure struct{ nodes, bytes int }

func (m *measure) add(value any, depth int) error {
	if m.nodes++; m.nodes > maxValueNodes {
		return fmt.Errorf("it has more than %d fields and elements", maxValueNodes)
	}
	if depth > maxValueDepth {
		return fmt.Errorf("it is nested deeper than %d", maxValueDepth)
	}
	switch v := value.(type) {
	case binary:
		return errNotText
	case string:
		m.bytes += len(v)
	case nil, bool, int64, float64:
		m.bytes += 8
	case []any:
		for _, element := range v {
			if err := m.add(element, depth+1); err != nil {
				return err
			}
		}
	case map[string]any:
		for key, field := range v {
			m.bytes += len(key)
			if err := m.add(field, depth+1); err != nil {
				return err
			}
		}
	default:
		return fmt.Errorf("it is of the type %T", value)
	}
	if m.bytes > maxValueBytes {
		return fmt.Errorf("it has more than %d bytes", maxValueBytes)
	}
	return nil
}

// taken returns a copy of a value within its bounds.
func taken(value any) (any, error) {
	if _, err := size(value); err != nil {
		return nil, err
	}
	return runtime.DeepCopyJSONValue(value), nil
}

// isSecret reports whether a resource is that of Secrets.
func isSecret(gr schema.GroupResource) bool { return gr == schema.GroupResource{Resource: "secrets"} }

// decoded returns an object as paths see it: the data of a Secret and the binaryData of a ConfigMap are decoded to
// text. The object itself is not changed.
func decoded(object map[string]any, gr schema.GroupResource) map[string]any {
	var field string
	switch gr {
	case schema.GroupResource{Resource: "secrets"}:
		field = "data"
	case schema.GroupResource{Resource: "configmaps"}:
		field = "binaryData"
	default:
		return object
	}
	data, ok := object[field].(map[string]any)
	if !ok {
		return object
	}
	out := maps.Clone(object)
	texts := make(map[string]any, len(data))
	for k, v := range data {
		texts[k] = text(v)
	}
	out[field] = texts
	return out
}

func text(value any) any {
	encoded, ok := value.(string)
	if !ok {
		return binary{}
	}
	raw, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil || !utf8.Valid(raw) {
		return binary{}
	}
	return string(raw)
}

// asJSON returns the value of an expression as JSON.
func asJSON(value ref.Val) (any, error) {
	c := conversion{}
	return c.convert(value, 0)
}

type conversion struct{ nodes int }

func (c *conversion) convert(value ref.Val, depth int) (any, error) {
	if c.nodes++; c.nodes > maxValueNodes || depth > maxValueDepth {
		return nil, fmt.Errorf("it has more than %d fields and elements, or is nested deeper than %d", maxValueNodes, maxValueDepth)
	}
	switch v := value.(type) {
	case types.String:
		return string(v), nil
	case types.Bool:
		return bool(v), nil
	case types.Int:
		return int64(v), nil
	case types.Uint:
		if v > math.MaxInt64 {
			return nil, errors.New("the number is too large")
		}
		return int64(v), nil
	case types.Double:
		return number(float64(v))
	case types.Null:
		return nil, nil //nolint:nilnil // It is the value.
	case traits.Lister:
		return c.list(v, depth)
	case traits.Mapper:
		return c.object(v, depth)
	}
	return nil, fmt.Errorf("it is of the type %s; string() converts many types to text", value.Type().TypeName())
}

// number returns a double as an API server answers with it: a whole one has the same text in JSON as an integer.
func number(v float64) (any, error) {
	switch {
	case math.IsNaN(v) || math.IsInf(v, 0):
		return nil, errors.New("it is not a number")
	case v == math.Trunc(v) && math.Abs(v) < maxExact:
		return int64(v), nil
	}
	return v, nil
}

func (c *conversion) list(list traits.Lister, depth int) (any, error) {
	out := []any{}
	for it := list.Iterator(); it.HasNext() == types.True; {
		element, err := c.convert(it.Next(), depth+1)
		if err != nil {
			return nil, err
		}
		out = append(out, element)
	}
	return out, nil
}

func (c *conversion) object(object traits.Mapper, depth int) (any, error) {
	out := map[string]any{}
	for it := object.Iterator(); it.HasNext() == types.True; {
		key := it.Next()
		name, ok := key.(types.String)
		if !ok {
			return nil, errors.New("it has a key that is not text")
		}
		field, err := c.convert(object.Get(key), depth+1)
		if err != nil {
			return nil, err
		}
		out[string(name)] = field
	}
	return out, nil
}
