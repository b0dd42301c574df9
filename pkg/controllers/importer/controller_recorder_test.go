// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package importer_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/masthead-dev/masthead/internal/test/controllertest"
)

var update = flag.Bool("update", false, "rewrite the golden file")

// aCanary is sent for another cloud than the first, when it comes while an upgrade of the first one's provider ends a
// version. The hub refuses either.
var aCanary = regexp.MustCompile(`^try to create \S+ "masthead-canary" `)

// onlyAllowedWrites compares what the importer wrote with the golden file, which lists all that it may write: no write
// is missing in the file, and the file has none that no test showed.
func (r *recorder) onlyAllowedWrites() error {
	r.mu.Lock()
	got := slices.Sorted(maps.Keys(r.seen))
	r.mu.Unlock()
	const golden = "testdata/writes.txt"
	if *update {
		if err := os.WriteFile(golden, []byte(strings.Join(got, "\n")+"\n"), 0o600); err != nil {
			return fmt.Errorf("cannot write %s: %w", golden, err)
		}
	}
	content, err := os.ReadFile(golden)
	if err != nil {
		return fmt.Errorf("cannot read %s: %w", golden, err)
	}
	allowed := strings.Split(strings.TrimSpace(string(content)), "\n")
	wrong := r.refusals()
	for _, line := range got {
		if !slices.Contains(allowed, line) && !aCanary.MatchString(line) {
			wrong = append(wrong, fmt.Errorf("the importer made a write that is not in %s: %s", golden, line))
		}
	}
	for _, line := range allowed {
		// Without all tests the file has more.
		if flag.Lookup("test.run").Value.String() == "" && !slices.Contains(got, line) {
			wrong = append(wrong, fmt.Errorf("no test showed a write that is in %s: %s", golden, line))
		}
	}
	return errors.Join(wrong...)
}

// refusals are the writes that were refused.
func (r *recorder) refusals() []error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.refused)
}

// recorder records every write of the importer: what it does, to which kind, where, and under which name. While it
// loses replies, the first write of each kind on each object is carried out and then answered with an error, as if the
// manager had been killed between the write and the next.
type recorder struct {
	mu   sync.Mutex
	seen map[string]bool
	// shapes are those of the names that the ClusterImports of the tests give.
	shapes []nameShape
	// refused are writes of a sort that the importer never makes.
	refused []error
	losing  bool
	lost    map[string]bool
}

// nameShape is how the names of some objects of an import look, and how they are shown.
type nameShape struct {
	name  *regexp.Regexp
	shown string
}

// names records a name as that of an import.
func (r *recorder) names(imp string) {
	const hash = "-[0-9a-f]{12}"
	quoted := regexp.QuoteMeta(imp)
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, shape := range [][2]string{
		{quoted, "<import>"},
		{quoted + "-kubeconfig", "<import>-kubeconfig"},
		{quoted + "-import-connection", "<import>-import-connection"},
		{quoted + "-.+" + hash, "<import>-<pool>-<hash>"},
		{"imp-" + quoted + hash, "imp-<import>-<hash>"},
		{"imp-" + metav1.NamespaceDefault + "-" + quoted + hash, "imp-<namespace>-<import>-<hash>"},
	} {
		r.shapes = append(r.shapes, nameShape{regexp.MustCompile("^" + shape[0] + "$"), shape[1]})
	}
}

// objectName is the name of an object, with what differs from import to import replaced. A name that no import gives is
// left as it is, and so is in no golden file.
func (r *recorder) objectName(name string) string {
	for _, shape := range r.shapes {
		if shape.name.MatchString(name) {
			return shape.shown
		}
	}
	return name
}

// account records a name as that of the ServiceAccount that an import names.
func (r *recorder) account(name string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.shapes = append(r.shapes, nameShape{regexp.MustCompile("^" + regexp.QuoteMeta(name) + "$"), "<account>"})
}

func (r *recorder) after(verb string, dryRun bool, obj client.Object, err error) error {
	gvk := obj.GetObjectKind().GroupVersionKind()
	if known, err := apiutil.GVKForObject(obj, controllertest.Scheme()); gvk.Empty() && err == nil {
		gvk = known
	}
	if strings.HasPrefix(gvk.Kind, "SelfSubject") {
		return err
	}
	scope := "in the namespace of the import"
	if obj.GetNamespace() == "" {
		scope = "cluster-scoped"
	}
	if ns := obj.GetNamespace(); ns != "" && ns != metav1.NamespaceDefault {
		scope = "in another namespace"
	}
	if dryRun {
		verb = "try to " + verb
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.seen[fmt.Sprintf("%s %s %q %s", verb, gvk.GroupKind(), r.objectName(obj.GetName()), scope)] = true
	what := verb + gvk.Kind + obj.GetName()
	if err == nil && r.losing && !dryRun && !r.lost[what] {
		r.lost[what] = true
		return errors.New("the reply was lost")
	}
	return err
}

func (r *recorder) lose(on bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.losing, r.lost = on, map[string]bool{}
}

// applied is an object that is applied.
func applied(o runtime.ApplyConfiguration) client.Object {
	if u, ok := o.(interface {
		GetName() string
		GetNamespace() string
	}); ok {
		if object, ok := u.(client.Object); ok {
			return object
		}
		out := &unstructured.Unstructured{}
		out.SetName(u.GetName())
		out.SetNamespace(u.GetNamespace())
		if k, ok := u.(interface {
			GroupVersionKind() schema.GroupVersionKind
		}); ok {
			out.SetGroupVersionKind(k.GroupVersionKind())
		}
		return out
	}
	return &unstructured.Unstructured{}
}

func (r *recorder) funcs() interceptor.Funcs {
	f := interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, obj client.Object, o ...client.CreateOption) error {
			options := &client.CreateOptions{}
			options.ApplyOptions(o)
			return r.after("create", len(options.DryRun) > 0, obj, c.Create(ctx, obj, o...))
		},
		Delete: func(ctx context.Context, c client.WithWatch, obj client.Object, o ...client.DeleteOption) error {
			options := &client.DeleteOptions{}
			options.ApplyOptions(o)
			return r.after("delete", len(options.DryRun) > 0, obj, c.Delete(ctx, obj, o...))
		},
		Update: func(ctx context.Context, c client.WithWatch, obj client.Object, o ...client.UpdateOption) error {
			options := &client.UpdateOptions{}
			options.ApplyOptions(o)
			return r.after("update", len(options.DryRun) > 0, obj, c.Update(ctx, obj, o...))
		},
		Patch: func(ctx context.Context, c client.WithWatch, obj client.Object, p client.Patch, o ...client.PatchOption) error {
			options := &client.PatchOptions{}
			options.ApplyOptions(o)
			return r.after("patch", len(options.DryRun) > 0, obj, c.Patch(ctx, obj, p, o...))
		},
		Apply: func(ctx context.Context, c client.WithWatch, obj runtime.ApplyConfiguration, o ...client.ApplyOption) error {
			options := &client.ApplyOptions{}
			options.ApplyOptions(o)
			return r.after("apply", len(options.DryRun) > 0, applied(obj), c.Apply(ctx, obj, o...))
		},
		SubResourceApply: func(ctx context.Context, c client.Client, sub string, obj runtime.ApplyConfiguration, o ...client.SubResourceApplyOption) error {
			options := &client.SubResourceApplyOptions{}
			options.ApplyOpts(o)
			return r.after("apply "+sub+" of", len(options.DryRun) > 0, applied(obj), c.SubResource(sub).Apply(ctx, obj, o...))
		},
	}
	f.SubResourceCreate = func(ctx context.Context, c client.Client, sub string, obj, requested client.Object, o ...client.SubResourceCreateOption) error {
		if _, ok := obj.(*corev1.ServiceAccount); !ok || sub != "token" {
			return r.refuse("SubResourceCreate")
		}
		return r.after("create token of", false, obj, c.SubResource(sub).Create(ctx, obj, requested, o...))
	}
	r.refuseOthers(&f)
	return f
}

// refuse records a write of a sort that the importer never makes.
func (r *recorder) refuse(name string) error {
	err := fmt.Errorf("the importer makes a write that no test knows: %s", name)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.refused = append(r.refused, err)
	return err
}

// refuseOthers makes those functions of a client fail that write and that the recorder does not know: the importer uses
// none of them, and one that a later version of the client adds must not pass unseen.
func (r *recorder) refuseOthers(f *interceptor.Funcs) {
	reads := []string{"Get", "List", "Watch", "SubResource", "SubResourceGet"}
	fields := reflect.ValueOf(f).Elem()
	for i := range fields.NumField() {
		field := fields.Type().Field(i)
		if !fields.Field(i).IsNil() || slices.Contains(reads, field.Name) {
			continue
		}
		fields.Field(i).Set(reflect.MakeFunc(field.Type, func([]reflect.Value) []reflect.Value {
			err := r.refuse(field.Name)
			return []reflect.Value{reflect.ValueOf(&err).Elem()}
		}))
	}
}

// TestRecorderSeesEveryWrite: the golden file says nothing of a write that the recorder does not see.
func TestRecorderSeesEveryWrite(t *testing.T) {
	r := &recorder{seen: map[string]bool{}, lost: map[string]bool{}}
	r.names("shop")
	c := interceptor.NewClient(fake.NewClientBuilder().WithScheme(controllertest.Scheme()).Build(), r.funcs())
	secret := func(name string) *corev1.Secret {
		return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: name}}
	}
	for name, write := range map[string]func() error{
		"DeleteAllOf":       func() error { return c.DeleteAllOf(t.Context(), secret("")) },
		"SubResourceCreate": func() error { return c.SubResource("token").Create(t.Context(), secret("a"), secret("b")) },
		"SubResourceUpdate": func() error { return c.Status().Update(t.Context(), secret("a")) },
		"SubResourcePatch":  func() error { return c.Status().Patch(t.Context(), secret("a"), client.Merge) },
	} {
		if err := write(); err == nil || !slices.ContainsFunc(r.refusals(), func(err error) bool { return strings.HasSuffix(err.Error(), name) }) {
			t.Errorf("%s must be refused and reported: %v, %v", name, err, r.refusals())
		}
	}
	for _, write := range []error{
		c.Create(t.Context(), secret("shop")), c.Create(t.Context(), secret("tried"), client.DryRunAll),
		c.Create(t.Context(), secret("imp-shop-0123456789ab")), c.Create(t.Context(), secret("shop-blue-0123456789ab")),
		c.Delete(t.Context(), secret("shop"), client.DryRunAll), c.Delete(t.Context(), secret("shop")),
	} {
		if write != nil {
			t.Fatal(write)
		}
	}
	want := []string{
		`create Secret "<import>" in the namespace of the import`, `create Secret "<import>-<pool>-<hash>" in the namespace of the import`,
		`create Secret "imp-<import>-<hash>" in the namespace of the import`, `delete Secret "<import>" in the namespace of the import`,
		`try to create Secret "tried" in the namespace of the import`, `try to delete Secret "<import>" in the namespace of the import`,
	}
	if got := slices.Sorted(maps.Keys(r.seen)); !slices.Equal(got, want) {
		t.Errorf("want %q, got %q", want, got)
	}
}
