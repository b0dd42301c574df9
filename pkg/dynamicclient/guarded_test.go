// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package dynamicclient

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/masthead-dev/masthead/pkg/guard"
)

var widgets = schema.GroupVersionResource{Group: "example.org", Version: "v1", Resource: "widgets"}

// watched is a server that sends events to watchers of widgets, and then nothing.
func watched(t *testing.T, events ...string) *rest.Config {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/apis/example.org/v1/widgets" || r.URL.Query().Get("watch") != "true" {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		for _, e := range events {
			_, _ = io.WriteString(w, e+"\n")
		}
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	}))
	t.Cleanup(server.Close)
	return &rest.Config{Host: server.URL}
}

// trapped are codecs that panic in one place.
type trapped struct {
	runtime.NegotiatedSerializer
	place string
}

func (c trapped) SupportedMediaTypes() []runtime.SerializerInfo {
	infos := c.NegotiatedSerializer.SupportedMediaTypes()
	for i, info := range infos {
		if info.StreamSerializer == nil {
			continue
		}
		stream := *info.StreamSerializer
		switch c.place {
		case "object":
			infos[i].Serializer = trappedSerializer{info.Serializer}
		case "event":
			stream.Serializer = trappedSerializer{stream.Serializer}
		case "frame":
			stream.Framer = trappedFramer{stream.Framer}
		}
		infos[i].StreamSerializer = &stream
	}
	return infos
}

type trappedSerializer struct{ runtime.Serializer }

func (trappedSerializer) Decode([]byte, *schema.GroupVersionKind, runtime.Object) (runtime.Object, *schema.GroupVersionKind, error) {
	panic("of a test")
}

type trappedFramer struct{ runtime.Framer }

func (trappedFramer) NewFrameReader(r io.ReadCloser) io.ReadCloser { return trappedReader{r} }

type trappedReader struct{ io.ReadCloser }

func (trappedReader) Read([]byte) (int, error) { panic("of a test") }

// TestPanicOfADecoderEndsTheWatch makes the decoder of the events of a watch panic, in client-go's goroutine. The test
// would not come to its end if the process died.
func TestPanicOfADecoderEndsTheWatch(t *testing.T) {
	for _, place := range []string{"object", "event", "frame"} {
		t.Run(place, func(t *testing.T) {
			reported := make(chan *guard.Panic, 10)
			config := dynamic.ConfigFor(watched(t, `{"type":"ADDED","object":{"apiVersion":"example.org/v1","kind":"Widget","metadata":{"name":"a"}}}`))
			config.NegotiatedSerializer = trapped{config.NegotiatedSerializer, place}
			client, err := newREST(config, http.DefaultClient, guard.New(func(p *guard.Panic) { reported <- p }))
			if err != nil {
				t.Fatal(err)
			}
			w, err := dynamic.New(client).Resource(widgets).Watch(t.Context(), metav1.ListOptions{})
			if err != nil {
				t.Fatal(err)
			}
			defer w.Stop()
			e, ok := <-w.ResultChan()
			if status, is := e.Object.(*metav1.Status); !ok || e.Type != watch.Error || !is || status.Status != metav1.StatusFailure {
				t.Errorf("want the watch to say that it failed, got %v %+v", e.Type, e.Object)
			}
			if _, more := <-w.ResultChan(); more {
				t.Error("want the watch to end")
			}
			if p := <-reported; p.Value != `"of a test"` {
				t.Errorf("want the panic to be reported, got %v", p)
			}
		})
	}
}

// TestMetadataIsWatchedAsBefore compares what a guarded metadata client sees with what client-go's does.
func TestMetadataIsWatchedAsBefore(t *testing.T) {
	object := func(name string) string {
		return fmt.Sprintf(`{"apiVersion":"meta.k8s.io/v1","kind":"PartialObjectMetadata","metadata":{"name":%q,"namespace":"ns","labels":{"a":"b"},"resourceVersion":"7"}}`, name)
	}
	config := watched(t,
		`{"type":"ADDED","object":`+object("a")+`}`,
		`{"type":"BOOKMARK","object":`+object("")+`}`,
		`{"type":"ERROR","object":{"apiVersion":"v1","kind":"Status","status":"Failure","code":410,"reason":"Expired"}}`,
	)
	seen := func(g *guard.Guard) (all []watch.Event) {
		t.Helper()
		c, err := NewMetadata(config, http.DefaultClient, g)
		if err != nil {
			t.Fatal(err)
		}
		w, err := c.Resource(widgets).Watch(t.Context(), metav1.ListOptions{ResourceVersion: "5", AllowWatchBookmarks: true})
		if err != nil {
			t.Fatal(err)
		}
		defer w.Stop()
		for range 3 {
			all = append(all, <-w.ResultChan())
		}
		return all
	}
	want, got := seen(nil), seen(guard.New(func(p *guard.Panic) { t.Error(p) }))
	for i := range want {
		w, err := runtime.DefaultUnstructuredConverter.ToUnstructured(want[i].Object)
		g, err2 := runtime.DefaultUnstructuredConverter.ToUnstructured(got[i].Object)
		if errors.Join(err, err2) != nil || want[i].Type != got[i].Type || fmt.Sprint(w) != fmt.Sprint(g) {
			t.Errorf("client-go sees %s %v, and we see %s %v", want[i].Type, w, got[i].Type, g)
		}
	}
	c, err := NewMetadata(config, http.DefaultClient, guard.New(func(*guard.Panic) {}))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Resource(widgets).Namespace("ns").Watch(t.Context(), metav1.ListOptions{}); err == nil {
		t.Error("want the namespace to be in the address, which the server does not know")
	}
}
