// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/masthead-dev/masthead/internal/test/controllertest"
)

var servers controllertest.Servers

func TestMain(m *testing.M) { servers.Run(m) }

// shapes is a schema with each shape that a merge treats differently. TYPE is that of all scalars but keys.
const shapes = `{"type": "object", "properties": {
  "size": {"type": "TYPE"},
  "struct": {"type": "object", "properties": {
    "a": {"type": "TYPE"}, "map": {"type": "object", "additionalProperties": {"type": "TYPE"}}, "set": SET}},
  "map": {"type": "object", "additionalProperties": {"type": "TYPE"}},
  "maps": {"type": "object", "additionalProperties": {"type": "object", "additionalProperties": {"type": "TYPE"}}},
  "sets": {"type": "object", "additionalProperties": SET},
  "atomicMap": {"type": "object", "x-kubernetes-map-type": "atomic", "additionalProperties": {"type": "TYPE"}},
  "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
  "set": SET,
  "atomic": {"type": "array", "items": {"type": "TYPE"}},
  "plain": {"type": "array", "items": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}},
  "list": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"],
    "items": {"type": "object", "required": ["name"], "properties": {
      "name": {"type": "string"}, "a": {"type": "TYPE"}, "set": SET,
      "map": {"type": "object", "additionalProperties": {"type": "TYPE"}}}}}}}`

// world is a kind of a real API server.
type world struct {
	controllertest.Case

	api client.Client
	gvk schema.GroupVersionKind
}

func newWorld(t *testing.T, group string) *world {
	t.Helper()
	env, err := servers.Start()
	if err != nil {
		t.Fatal(err)
	}
	scheme := runtime.NewScheme()
	if err := apiextensionsv1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	w := &world{
		Case: controllertest.Case{T: t, Ctx: t.Context(), Patience: time.Minute},
		api:  controllertest.NewClient(t, env.Config, scheme),
		gvk:  schema.GroupVersionKind{Group: group, Version: "v1", Kind: "Shape"},
	}
	w.define("string")
	return w
}

// define makes scalars have a type.
func (w *world) define(scalar string) {
	w.T.Helper()
	const set = `{"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "TYPE"}}`
	text := strings.ReplaceAll(shapes, "SET", set)
	var spec apiextensionsv1.JSONSchemaProps
	if err := json.Unmarshal([]byte(strings.ReplaceAll(text, "TYPE", scalar)), &spec); err != nil {
		w.T.Fatal(err)
	}
	crd := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: "shapes." + w.gvk.Group}}
	_ = w.api.Get(w.Ctx, client.ObjectKeyFromObject(crd), crd)
	crd.Spec = apiextensionsv1.CustomResourceDefinitionSpec{
		Group: w.gvk.Group, Scope: apiextensionsv1.NamespaceScoped,
		Names: apiextensionsv1.CustomResourceDefinitionNames{
			Kind: "Shape", ListKind: "ShapeList", Plural: "shapes", Singular: "shape",
		},
		Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
			Name: "v1", Served: true, Storage: true,
			Subresources: &apiextensionsv1.CustomResourceSubresources{
				Status: &apiextensionsv1.CustomResourceSubresourceStatus{},
			},
			Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{
				Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{
					"spec":   spec,
					"status": {Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{"phase": {Type: "string"}}},
				},
			}},
		}},
	}
	write := func() error { return w.api.Create(w.Ctx, crd) }
	if crd.UID != "" {
		write = func() error { return w.api.Update(w.Ctx, crd) }
	}
	if err := write(); err != nil {
		w.T.Fatal(err)
	}
	w.Within("the kind is served with "+scalar, func() error {
		probe := w.object("probe", map[string]any{"size": scalarValue(scalar, 1)})
		return w.apply(probe, "probe", client.DryRunAll)
	})
}

func scalarValue(kind string, n int) any {
	if kind == "string" {
		return fmt.Sprint("v", n)
	}
	return int64(n)
}

func (w *world) object(name string, spec map[string]any) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
	u.SetGroupVersionKind(w.gvk)
	u.SetNamespace("default")
	u.SetName(name)
	return u.DeepCopy()
}

func (w *world) apply(u *unstructured.Unstructured, manager client.FieldOwner, o ...client.ApplyOption) error {
	return w.api.Apply(w.Ctx, client.ApplyConfigurationFromUnstructured(u), append(o, manager)...)
}

// create applies a new object, and what another manager adds to it.
func (w *world) create(name string, spec, others map[string]any) *unstructured.Unstructured {
	w.T.Helper()
	u := w.object(name, spec)
	if err := w.apply(u, "us"); err != nil {
		w.T.Fatalf("cannot create %v: %v", spec, err)
	}
	if others != nil {
		theirs := w.object(name, others)
		if err := w.apply(theirs, "others"); err != nil {
			w.T.Fatalf("cannot add %v: %v", others, err)
		}
	}
	return w.get(name)
}

func (w *world) get(name string) *unstructured.Unstructured {
	w.T.Helper()
	u := w.object(name, nil)
	if err := w.api.Get(w.Ctx, client.ObjectKeyFromObject(u), u); err != nil {
		w.T.Fatal(err)
	}
	return u
}

// counting counts requests.
type counting struct {
	client.Client

	applies, patches, reads int
}

func (c *counting) Apply(ctx context.Context, obj runtime.ApplyConfiguration, o ...client.ApplyOption) error {
	c.applies++
	return c.Client.Apply(ctx, obj, o...)
}

func (c *counting) Patch(ctx context.Context, obj client.Object, p client.Patch, o ...client.PatchOption) error {
	c.patches++
	return c.Client.Patch(ctx, obj, p, o...)
}

func (c *counting) Get(ctx context.Context, key client.ObjectKey, obj client.Object, o ...client.GetOption) error {
	c.reads++
	return c.Client.Get(ctx, key, obj, o...)
}

// push updates an object that is known without its managedFields.
func (w *world) push(have *unstructured.Unstructured, spec map[string]any) (counting, error) {
	requests := counting{Client: w.api}
	want := w.object(have.GetName(), spec)
	want.SetUID(have.GetUID())
	want.SetResourceVersion(have.GetResourceVersion())
	known := have.DeepCopy()
	known.SetManagedFields(nil)
	err := Update{Client: &requests, Manager: "us", Reader: &requests}.Apply(w.Ctx, want, known)
	return requests, err
}

// random makes specs whose scalars are of one kind.
type random struct {
	*rand.Rand

	scalar string
}

func (r random) value() any { return scalarValue(r.scalar, r.IntN(3)) }

// fields returns some of the fields, each with a probability.
func (r random) fields(of map[string]func() any) map[string]any {
	out := map[string]any{}
	for _, name := range slices.Sorted(maps.Keys(of)) {
		if r.IntN(2) == 0 {
			out[name] = of[name]()
		}
	}
	return out
}

func (r random) entries(value func() any) any {
	return r.fields(map[string]func() any{"a": value, "b": value, "~/c": value})
}

func (r random) scalars() any { return r.entries(r.value) }

func (r random) set() any {
	out := []any{}
	for i := range 3 {
		if r.IntN(2) == 0 {
			out = append(out, scalarValue(r.scalar, i))
		}
	}
	return out
}

func (r random) free() any {
	switch r.IntN(4) {
	case 0, 1:
		return r.entries(r.free)
	case 2:
		return []any{r.scalars()}
	}
	return r.value()
}

func (r random) list() any {
	out := []any{}
	for _, name := range []string{"a", "b"} {
		if r.IntN(2) == 0 {
			element := r.fields(map[string]func() any{"a": r.value, "map": r.scalars, "set": r.set})
			element["name"] = name
			out = append(out, element)
		}
	}
	return out
}

func (r random) plain() any {
	out := []any{}
	for range r.IntN(3) {
		out = append(out, r.scalars())
	}
	return out
}

func (r random) spec() map[string]any {
	return r.fields(map[string]func() any{
		"size": r.value, "map": r.scalars, "atomicMap": r.scalars, "set": r.set, "atomic": r.set, "plain": r.plain,
		"list":   r.list,
		"struct": func() any { return r.fields(map[string]func() any{"a": r.value, "map": r.scalars, "set": r.set}) },
		"maps":   func() any { return r.entries(r.scalars) },
		"sets":   func() any { return r.entries(r.set) },
		"free":   func() any { return r.entries(r.free) },
	})
}

// others is what another manager has put into the maps and lists of each object.
func others(r random) map[string]any {
	return map[string]any{
		"map":    map[string]any{"others": r.value()},
		"maps":   map[string]any{"a": map[string]any{"others": r.value()}},
		"struct": map[string]any{"map": map[string]any{"others": r.value()}},
		"free":   map[string]any{"others": map[string]any{"a": r.value()}},
		"list":   []any{map[string]any{"name": "others", "map": map[string]any{"others": r.value()}}},
	}
}

// merged adds what others have put there to what is wanted.
func merged(want, others any) any {
	switch o := others.(type) {
	case map[string]any:
		w, _ := want.(map[string]any)
		out := map[string]any{}
		maps.Copy(out, w)
		for k, v := range o {
			out[k] = merged(w[k], v)
		}
		return out
	case []any:
		w, _ := want.([]any)
		return append(slices.Clone(w), o...)
	}
	return others
}

// trimmed drops empty lists that are not wanted, and a struct of such. No manager can own an empty list that is merged
// by keys, so that no apply removes it, and none needs to.
func trimmed(have, want any) any {
	h, ok := have.(map[string]any)
	if !ok {
		return have
	}
	w, _ := want.(map[string]any)
	out := map[string]any{}
	for k, v := range h {
		if _, wanted := w[k]; wanted || !isEmpty(v) || kind(v) != list && k != "struct" {
			out[k] = trimmed(v, w[k])
		}
	}
	return out
}

// differs compares the content of an object with what was wanted.
func differs(want, have any) string {
	return gocmp.Diff(want, trimmed(have, want), sortLists)
}

// sortLists makes lists comparable whose elements may change places.
var sortLists = gocmp.Transformer("sorted", func(in []any) string {
	lines := make([]string, 0, len(in))
	for _, v := range in {
		if element, ok := v.(map[string]any); ok && element["name"] != nil && isEmpty(element["set"]) {
			element = maps.Clone(element)
			delete(element, "set") // As above.
			v = element
		}
		data, _ := json.Marshal(v)
		lines = append(lines, string(data))
	}
	slices.SortFunc(lines, cmp.Compare[string])
	return strings.Join(lines, "\n")
})

// TestUpdateLeavesExactlyWhatIsWanted pushes random objects over each other, and nothing else may be left of any.
func TestUpdateLeavesExactlyWhatIsWanted(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "exact.example.org")
	prepared := 0
	for seed := range uint64(60) {
		r := random{rand.New(rand.NewPCG(seed, 1)), "string"}
		var theirs map[string]any
		if seed%3 == 0 {
			theirs = others(r)
		}
		have := w.create(fmt.Sprint("o", seed), r.spec(), theirs)
		for step := range 4 {
			before, spec := have.Object["spec"], r.spec()
			requests, err := w.push(have, spec)
			if err != nil {
				t.Fatalf("seed %d, step %d: cannot push %v over %v: %v", seed, step, spec, before, err)
			}
			have = w.get(have.GetName())
			wanted := any(spec)
			if theirs != nil {
				wanted = merged(spec, theirs)
			}
			if diff := differs(wanted, have.Object["spec"]); diff != "" {
				t.Fatalf("seed %d, step %d: pushed %v over %v: (-want +got)\n%s", seed, step, spec, before, diff)
			}
			prepared += requests.patches
			if requests.applies != 1 || requests.patches > 2 || requests.reads > 1 {
				t.Errorf("seed %d, step %d: want one apply, with one read and two patches at most, got %+v", seed, step, requests)
			}
			for _, e := range have.GetManagedFields() {
				if e.Manager == "us" && e.Operation != metav1.ManagedFieldsOperationApply {
					t.Fatalf("seed %d, step %d: fields belong to another entry, and could not be removed: %s", seed, step, e.FieldsV1)
				}
			}
		}
	}
	if prepared == 0 {
		t.Error("no object needed a patch, so that nothing was tested")
	}
}

// coversMaps leaves out the list that is merged by keys: elements without an owner stay.
func coversMaps(have any, want map[string]any) bool {
	want = maps.Clone(want)
	delete(want, "list")
	return Covers(have, want)
}

// TestUpdateOfOtherTypes changes the types in a definition under objects. The status of half of them is written before
// they are pushed again, which makes the API server drop their managedFields.
func TestUpdateOfOtherTypes(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "types.example.org")
	const objects = 40
	for seed := range uint64(objects) {
		r := random{rand.New(rand.NewPCG(seed, 2)), "string"}
		w.create(fmt.Sprint("o", seed), r.spec(), nil)
	}
	w.define("integer")
	retyped := 0
	for seed := range uint64(objects) {
		r := random{rand.New(rand.NewPCG(seed, 3)), "integer"}
		have := w.get(fmt.Sprint("o", seed))
		before, isKnown := have.Object["spec"], seed%2 == 0
		if !isKnown {
			have.Object["status"] = map[string]any{"phase": "x"}
			if err := w.api.Status().Update(w.Ctx, have); err != nil {
				t.Fatal(err)
			}
		}
		spec := r.spec()
		requests, err := w.push(have, spec)
		retyped += requests.patches
		have = w.get(have.GetName())
		switch {
		case !isKnown && err != nil:
			if words := Refusal(err); words == nil || !strings.Contains(words.Error(), ".spec.") {
				t.Errorf("seed %d: want an answer that names the field, got %v", seed, err)
			}
			continue
		case err != nil:
			t.Errorf("seed %d: cannot push %v over %v: %v", seed, spec, before, err)
			continue
		case !isKnown && !coversMaps(have.Object["spec"], spec):
			t.Errorf("seed %d: pushed %v over %v, got %v", seed, spec, before, have.Object["spec"])
		}
		if diff := differs(any(spec), have.Object["spec"]); isKnown && diff != "" {
			t.Errorf("seed %d: pushed %v over %v: (-want +got)\n%s", seed, spec, before, diff)
		}
		// From then on it is an object as any other.
		after := r.spec()
		if _, err := w.push(have, after); err != nil {
			t.Errorf("seed %d: cannot push again: %v", seed, err)
		}
		if diff := differs(any(after), w.get(have.GetName()).Object["spec"]); isKnown && diff != "" {
			t.Errorf("seed %d: pushed %v over %v: (-want +got)\n%s", seed, after, spec, diff)
		}
	}
	if retyped == 0 {
		t.Error("no object needed a patch, so that nothing was tested")
	}
}

// TestUpdateOfAnotherState is refused, and changes nothing.
func TestUpdateOfAnotherState(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "state.example.org")
	stale := w.create("stale", map[string]any{"map": map[string]any{"a": "b"}}, nil)
	if _, err := w.push(stale, map[string]any{"map": map[string]any{"a": "c"}}); err != nil {
		t.Fatal(err)
	}
	if _, err := w.push(stale, map[string]any{"map": map[string]any{}}); !apierrors.IsConflict(err) {
		t.Errorf("want a conflict, got %v", err)
	}
	if got := w.get("stale").Object["spec"]; !Covers(got, map[string]any{"map": map[string]any{"a": "c"}}) {
		t.Errorf("it was changed: %v", got)
	}
}

// TestUpdateOfNull mends what an apply alone has stored.
func TestUpdateOfNull(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "null.example.org")
	want := map[string]any{"free": map[string]any{"a": map[string]any{}}}
	w.create("null", map[string]any{"free": map[string]any{"a": map[string]any{"b": "c"}}}, nil)
	broken := w.object("null", want)
	if err := w.apply(broken, "us"); err != nil {
		t.Fatal(err)
	}
	if Covers(broken.Object["spec"], want) {
		t.Errorf("%v is taken for %v", broken.Object["spec"], want)
	}
	if _, err := w.push(w.get("null"), want); err != nil {
		t.Fatal(err)
	}
	if diff := gocmp.Diff(any(want), w.get("null").Object["spec"]); diff != "" {
		t.Errorf("null was left: (-want +got)\n%s", diff)
	}
}
