// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package multicluster

import (
	"context"
	"fmt"
	"os"
	"sync"
	"testing"

	"github.com/go-logr/logr"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/masthead-dev/masthead/internal/test/testenv"
	"github.com/masthead-dev/masthead/pkg/kindwatch"
)

// controlPlane is a real etcd and API server. The first test that needs it starts it, and TestMain stops it.
type controlPlane struct {
	once sync.Once
	env  *envtest.Environment
	cfg  *rest.Config
	err  error
}

var shared controlPlane

func TestMain(m *testing.M) {
	logf.SetLogger(logr.Discard())
	klog.SetLogger(logr.Discard())
	code := m.Run()
	if shared.env != nil {
		if err := shared.env.Stop(); err != nil {
			fmt.Fprintln(os.Stderr, "cannot stop the control plane:", err)
			code = max(code, 1)
		}
	}
	os.Exit(code)
}

// start returns how to reach the API server as an administrator.
func (p *controlPlane) start(t *testing.T) *rest.Config {
	t.Helper()
	p.once.Do(func() {
		if p.env, p.err = testenv.New(); p.err == nil { // TestMain also stops what a failed start has left.
			p.cfg, p.err = testenv.Start(p.env)
		}
	})
	if p.err != nil {
		t.Fatal(p.err)
	}
	return rest.CopyConfig(p.cfg)
}

// widget is a typed object of the kind that the tests define and delete.
type widget struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
}

func (w *widget) DeepCopyObject() runtime.Object {
	return &widget{TypeMeta: w.TypeMeta, ObjectMeta: *w.DeepCopy()}
}

// widgetList is a list of them.
type widgetList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata"`

	Items []widget `json:"items"`
}

func (l *widgetList) DeepCopyObject() runtime.Object {
	out := &widgetList{TypeMeta: l.TypeMeta, ListMeta: *l.DeepCopy()}
	for i := range l.Items {
		out.Items = append(out.Items, *l.Items[i].DeepCopyObject().(*widget))
	}
	return out
}

// fixture is a test's own kind in a real API server, which does not serve it at first.
type fixture struct {
	t      *testing.T
	cfg    *rest.Config
	scheme *runtime.Scheme
	client client.Client
	gvk    schema.GroupVersionKind
}

func newFixture(t *testing.T, group string) *fixture {
	t.Helper()
	f := &fixture{
		t:      t,
		cfg:    shared.start(t),
		scheme: runtime.NewScheme(),
		gvk:    schema.GroupVersionKind{Group: group + ".example.org", Version: "v1", Kind: "Widget"},
	}
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, apiextensionsv1.AddToScheme} {
		if err := add(f.scheme); err != nil {
			t.Fatal(err)
		}
	}
	f.scheme.AddKnownTypeWithName(f.gvk, &widget{})
	f.scheme.AddKnownTypeWithName(f.gvk.GroupVersion().WithKind("WidgetList"), &widgetList{})
	metav1.AddToGroupVersion(f.scheme, f.gvk.GroupVersion())
	var err error
	if f.client, err = client.New(f.cfg, client.Options{Scheme: f.scheme}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(f.undefine)
	return f
}

// newCluster returns a new instance of the cluster.
func (f *fixture) newCluster(cfg *rest.Config) cluster.Cluster {
	f.t.Helper()
	cl, err := cluster.New(cfg, func(o *cluster.Options) {
		o.Scheme = f.scheme
	})
	if err != nil {
		f.t.Fatal(err)
	}
	return cl
}

func (f *fixture) definition() *apiextensionsv1.CustomResourceDefinition {
	preserve := true
	return &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: "widgets." + f.gvk.Group},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: f.gvk.Group,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: "widgets", Kind: f.gvk.Kind},
			Scope: apiextensionsv1.NamespaceScoped,
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: f.gvk.Version, Served: true, Storage: true,
				Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{
					Type: "object", XPreserveUnknownFields: &preserve,
				}},
			}},
		},
	}
}

// define makes the API server serve the kind.
func (f *fixture) define() {
	f.t.Helper()
	if err := f.client.Create(f.t.Context(), f.definition()); err != nil {
		f.t.Fatal(err)
	}
}

// undefine makes the API server not serve the kind any more, and waits for that.
func (f *fixture) undefine() {
	f.t.Helper()
	ctx := f.t.Context()
	if ctx.Err() != nil { // This is a clean-up.
		ctx = f.background()
	}
	if err := client.IgnoreNotFound(f.client.Delete(ctx, f.definition())); err != nil {
		f.t.Fatal(err)
	}
	eventually(f.t, "the definition is not deleted", func() bool {
		if err := testenv.ReleaseDefinitions(ctx, f.client); err != nil {
			f.t.Error(err)
		}
		d := f.definition()
		return apierrors.IsNotFound(f.client.Get(ctx, client.ObjectKeyFromObject(d), d))
	})
}

// kind is the kind of the fixture, as a watcher has it.
func (f *fixture) kind() kindwatch.Kind {
	return kindwatch.Kind{GroupVersionKind: f.gvk, Resource: "widgets"}
}

// object returns a widget in the namespace that every API server has.
func (f *fixture) object(name string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(f.gvk)
	u.SetNamespace(metav1.NamespaceDefault)
	u.SetName(name)
	return u
}

// create creates a widget, as soon as the kind is served.
func (f *fixture) create(name string) {
	f.t.Helper()
	var err error
	eventually(f.t, "a widget cannot be created", func() bool {
		err = f.client.Create(f.t.Context(), f.object(name))
		return err == nil
	})
}

// background is the context for clean-ups, after the test's context has ended.
func (*fixture) background() context.Context { return context.Background() }
