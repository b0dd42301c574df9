// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package kindwatch

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// diary keeps the events of a Watcher that keeps notes.
type diary struct {
	mu     sync.Mutex
	events []Event
}

func (d *diary) handle(e Event) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.events = append(d.events, e)
}

// of returns what was reported of an object, without versions.
func (d *diary) of(name string) []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	var out []string
	for _, e := range d.events {
		if e.Entry == nil || e.Entry.Key.Name != name {
			continue
		}
		line := string(e.Type) + " " + e.Entry.Record.(note).value //nolint:forcetypeassert // It is what Reduce makes.
		if e.Relisted {
			line += " relisted"
		}
		out = append(out, line)
	}
	return out
}

func (d *diary) tells(name string, want ...string) func() error {
	return func() error {
		if diff := cmp.Diff(want, d.of(name)); diff != "" {
			return fmt.Errorf("events of %s (-want +got):\n%s", name, diff)
		}
		return nil
	}
}

func keepNotes(o *Options) { o.Reduce = reduceToNote }

// newConfigMaps are the ConfigMaps of one test: those in a namespace of its own.
func newConfigMaps(t *testing.T, c client.Client) (Kind, func(name, app, value string) *corev1.ConfigMap) {
	t.Helper()
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "notes-"}}
	if err := c.Create(t.Context(), ns); err != nil {
		t.Fatal(err)
	}
	kind := configMaps
	kind.FieldSelector = "metadata.namespace=" + ns.Name
	return kind, func(name, app, value string) *corev1.ConfigMap {
		cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: ns.Name, Name: name}, Data: map[string]string{"value": value}}
		if app != "" {
			cm.Annotations = map[string]string{appAnnotation: app}
		}
		return cm
	}
}

func names(entries []Entry) []string {
	var out []string
	for _, e := range entries {
		out = append(out, e.Key.Name)
	}
	return out
}

// finds fails unless the objects with an index key are just these.
func finds(w *Watcher, kind Kind, indexKey string, want ...string) func() error {
	return func() error {
		got, err := w.Lookup(kind, indexKey)
		if err != nil {
			return err
		}
		if diff := cmp.Diff(want, names(got)); diff != "" {
			return fmt.Errorf("objects under %s (-want +got):\n%s", indexKey, diff)
		}
		return nil
	}
}

func TestRecordsAreKeptInsteadOfObjects(t *testing.T) {
	// The second way is the one of API servers, and of proxies, that do not stream lists.
	for name, cfg := range map[string]*rest.Config{"Stream": config, "Pages": withoutStreams(config)} {
		t.Run(name, func(t *testing.T) {
			c := testClient(t)
			kind, cm := newConfigMaps(t, c)
			apply := func(write func(context.Context, client.Object) error, obj client.Object) {
				t.Helper()
				if err := write(t.Context(), obj); err != nil {
					t.Fatal(err)
				}
			}
			create := func(_ context.Context, obj client.Object) error { return c.Create(t.Context(), obj) }
			update := func(_ context.Context, obj client.Object) error { return c.Update(t.Context(), obj) }
			remove := func(_ context.Context, obj client.Object) error { return c.Delete(t.Context(), obj) }

			stays, leaves, other := cm("stays", "shop", "1"), cm("leaves", "shop", "1"), cm("other", "", "1")
			for _, obj := range []client.Object{stays, leaves, other} {
				apply(create, obj)
			}
			d := &diary{}
			w, _ := start(t, cfg, d.handle, keepNotes)
			w.Set("test", kind)
			eventually(t, "synced", inState(w, kind, StateSynced))
			eventually(t, "what the first list brought is found", finds(w, kind, "app/shop", "leaves", "stays"))
			if err := finds(w, kind, "app/bank")(); err != nil {
				t.Error(err)
			}

			comes := cm("comes", "shop", "1")
			apply(create, comes)
			eventually(t, "so is what comes", finds(w, kind, "app/shop", "comes", "leaves", "stays"))
			other.Annotations = map[string]string{appAnnotation: "bank"}
			apply(update, other)
			eventually(t, "and what becomes a candidate", finds(w, kind, "app/bank", "other"))
			leaves.Annotations = nil
			apply(update, leaves)
			eventually(t, "what is no candidate any more is not", finds(w, kind, "app/shop", "comes", "stays"))
			eventually(t, "and its deletion is reported", d.tells("leaves", "Added 1", "Deleted 1"))

			stays.Labels = map[string]string{"not": "recorded"}
			apply(update, stays)
			eventually(t, "the version of what is silently changed is known", func() error {
				e, err := w.Entry(kind, client.ObjectKeyFromObject(stays))
				if err != nil {
					return err
				}
				if e.ResourceVersion != stays.ResourceVersion || e.UID != stays.UID {
					return fmt.Errorf("want version %s of %s, got %s of %s", stays.ResourceVersion, stays.UID, e.ResourceVersion, e.UID)
				}
				return nil
			})
			stays.Data["value"] = "2"
			apply(update, stays)
			eventually(t, "only what the record shows is reported", d.tells("stays", "Added 1", "Updated 2"))

			apply(remove, comes)
			eventually(t, "what is deleted is gone", finds(w, kind, "app/shop", "stays"))
			eventually(t, "and reported", d.tells("comes", "Added 1", "Deleted 1"))
			again := cm("comes", "shop", "2")
			apply(create, again)
			eventually(t, "another of the same name is another", d.tells("comes", "Added 1", "Deleted 1", "Added 2"))

			if _, err := w.Entry(kind, client.ObjectKeyFromObject(leaves)); !apierrors.IsNotFound(err) {
				t.Errorf("want NotFound for what is no candidate, got %v", err)
			}
			all, err := w.Entries(kind)
			if diff := cmp.Diff([]string{"comes", "other", "stays"}, names(all)); err != nil || diff != "" {
				t.Errorf("want all entries in order, got (-want +got):\n%s%v", diff, err)
			}
			objs, err := w.List(kind)
			if err != nil || slices.ContainsFunc(objs, func(i *Item) bool { return i.Object() != nil }) {
				t.Errorf("want no objects, got %v %v", objs, err)
			}
			if _, err := w.Lookup(configMaps, "app/shop"); !errors.Is(err, ErrNotWatched) {
				t.Errorf("want ErrNotWatched, got %v", err)
			}
			d.mu.Lock()
			defer d.mu.Unlock()
			for _, e := range d.events {
				if e.Object != nil || e.Old != nil {
					t.Errorf("want no object in an event of a record, got %+v", e)
				}
			}
		})
	}
}

// withoutStreams makes an API server refuse to stream lists.
func withoutStreams(cfg *rest.Config) *rest.Config {
	return intercepted(cfg, func(req *http.Request, next http.RoundTripper) (*http.Response, error) {
		if strings.Contains(req.URL.RawQuery, "sendInitialEvents=true") {
			return response(req, http.StatusUnprocessableEntity, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Invalid","code":422}`), nil
		}
		return next.RoundTrip(req)
	})
}

// TestWhatWentDuringAGapIsReported closes the watch, and has things happen before the next list.
func TestWhatWentDuringAGapIsReported(t *testing.T) {
	c := testClient(t)
	kind, cm := newConfigMaps(t, c)
	deleted, replaced, left, stays := cm("deleted", "shop", "1"), cm("replaced", "shop", "1"), cm("left", "shop", "1"), cm("stays", "shop", "1")
	for _, obj := range []client.Object{deleted, replaced, left, stays} {
		if err := c.Create(t.Context(), obj); err != nil {
			t.Fatal(err)
		}
	}
	gap := &breaker{}
	d := &diary{}
	w, _ := start(t, intercepted(config, gap.roundTrip), d.handle, keepNotes, func(o *Options) {
		o.MinBackoff, o.MaxBackoff = 10*time.Millisecond, 50*time.Millisecond
	})
	w.Set("test", kind)
	eventually(t, "synced", finds(w, kind, "app/shop", "deleted", "left", "replaced", "stays"))

	gap.open()
	if err := errors.Join(c.Delete(t.Context(), deleted), c.Delete(t.Context(), replaced)); err != nil {
		t.Fatal(err)
	}
	left.Annotations, stays.Labels = nil, map[string]string{"not": "recorded"}
	if err := errors.Join(c.Update(t.Context(), left), c.Update(t.Context(), stays), c.Create(t.Context(), cm("replaced", "shop", "2"))); err != nil {
		t.Fatal(err)
	}
	if err := finds(w, kind, "app/shop", "deleted", "left", "replaced", "stays")(); err != nil {
		t.Errorf("want the last known records to be served while the connection is broken: %v", err)
	}
	gap.close()

	eventually(t, "the difference is there", finds(w, kind, "app/shop", "replaced", "stays"))
	eventually(t, "a deletion is reported", d.tells("deleted", "Added 1", "Deleted 1 relisted"))
	eventually(t, "so is a replacement", d.tells("replaced", "Added 1", "Deleted 1 relisted", "Added 2"))
	eventually(t, "and one that is no candidate any more", d.tells("left", "Added 1", "Deleted 1 relisted"))
	if err := d.tells("stays", "Added 1")(); err != nil {
		t.Error(err)
	}
}

// breaker breaks all watches and refuses new ones while it is open, and then says that their history is gone.
type breaker struct {
	mu      sync.Mutex
	broken  bool
	expired bool
	cancels []context.CancelFunc
}

func (b *breaker) open() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.broken, b.expired = true, true
	for _, cancel := range b.cancels {
		cancel()
	}
	b.cancels = nil
}

func (b *breaker) close() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.broken = false
}

func (b *breaker) roundTrip(req *http.Request, next http.RoundTripper) (*http.Response, error) {
	b.mu.Lock()
	if b.broken {
		b.mu.Unlock()
		return nil, errors.New("the connection is broken")
	}
	if b.expired && req.URL.Query().Get("resourceVersion") != "" && req.URL.Query().Get("watch") != "" {
		b.expired = false
		b.mu.Unlock()
		return response(req, http.StatusGone, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Expired","code":410}`), nil
	}
	ctx, cancel := context.WithCancel(req.Context())
	b.cancels = append(b.cancels, cancel)
	b.mu.Unlock()
	return next.RoundTrip(req.WithContext(ctx))
}

func TestMetadataIsReduced(t *testing.T) {
	c := testClient(t)
	_, cm := newConfigMaps(t, c)
	kept := cm("kept", "shop", "secret")
	if err := errors.Join(c.Create(t.Context(), kept), c.Create(t.Context(), cm("other", "", "x"))); err != nil {
		t.Fatal(err)
	}
	kind := configMaps
	kind.MetadataOnly, kind.FieldSelector = true, "metadata.namespace="+kept.Namespace
	d := &diary{}
	var mu sync.Mutex
	var seen []map[string]any
	w, _ := start(t, config, d.handle, func(o *Options) {
		o.Reduce = func(k Kind, obj *unstructured.Unstructured) (Record, bool) {
			mu.Lock()
			defer mu.Unlock()
			seen = append(seen, obj.DeepCopy().Object)
			return reduceToNote(k, obj)
		}
	})
	w.Set("test", kind)
	eventually(t, "the record is found", finds(w, kind, "app/shop", "kept"))
	eventually(t, "it is reported", d.tells("kept", "Added "))
	mu.Lock()
	defer mu.Unlock()
	for _, obj := range seen {
		delete(obj, "metadata")
		if diff := cmp.Diff(map[string]any{"apiVersion": "v1", "kind": "ConfigMap"}, obj); diff != "" {
			t.Errorf("want metadata only (-want +got):\n%s", diff)
		}
	}
}

func TestRelistReducesAgain(t *testing.T) {
	c := testClient(t)
	kind, cm := newConfigMaps(t, c)
	if err := errors.Join(c.Create(t.Context(), cm("same", "shop", "1")), c.Create(t.Context(), cm("other", "shop", "2"))); err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	rule := func(value string) string { return value }
	d := &diary{}
	w, _ := start(t, config, d.handle, func(o *Options) {
		o.Reduce = func(k Kind, obj *unstructured.Unstructured) (Record, bool) {
			mu.Lock()
			defer mu.Unlock()
			r, ok := reduceToNote(k, obj)
			if n, isNote := r.(note); isNote {
				r = note{n.app, rule(n.value)}
			}
			return r, ok
		}
		// A back-off that never ends: a relist does not wait for it.
		o.Clock = clocktesting.NewFakeClock(time.Now())
	})
	w.Set("test", kind)
	eventually(t, "synced", finds(w, kind, "app/shop", "other", "same"))
	mu.Lock()
	rule = func(value string) string { return strings.ReplaceAll(value, "2", "two") }
	mu.Unlock()
	w.Relist(only(kind))
	eventually(t, "what the rule changes is reported", d.tells("other", "Added 2", "Updated two"))
	if err := d.tells("same", "Added 1")(); err != nil {
		t.Error(err)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if states := slices.DeleteFunc(slices.Clone(d.events), func(e Event) bool { return e.Type != StateChanged }); len(states) != 1 {
		t.Errorf("want the kind to stay synced, got %v", states)
	}
}
