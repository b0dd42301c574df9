// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package kindwatch

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/client-go/rest"
)

func TestKindOverItsBudgetIsDroppedAndComesBack(t *testing.T) {
	c := testClient(t)
	for name, tc := range map[string]struct {
		reason string
		limit  func(*Options)
	}{
		"objects": {reason: "Too many objects are too large.", limit: func(o *Options) { o.PerKind.Objects = 3 }},
		"bytes":   {reason: "So are large ones.", limit: func(o *Options) { o.PerKind.Bytes = 10_000 }},
		"total":   {reason: "And too many in all kinds.", limit: func(o *Options) { o.Total.Objects = 10 }},
	} {
		t.Run(name, func(t *testing.T) {
			kind, crd := widgets(t, "budget"+name)
			if err := c.Create(t.Context(), crd); err != nil {
				t.Fatal(err)
			}
			big := strings.Repeat("x", 4_000)
			createWhenServed(t, c, widget(kind, "first"))
			w, _ := start(t, config, func(Event) {}, tc.limit, func(o *Options) {
				o.MinBackoff, o.MaxBackoff = 10*time.Millisecond, 50*time.Millisecond
			})
			w.Set("test", kind)
			eventually(t, "it is synced while it is small", has(w, kind, "first"))
			for i := range 12 {
				obj := widget(kind, fmt.Sprintf("w%d", i))
				obj.Object["spec"] = map[string]any{"big": big}
				if err := c.Create(t.Context(), obj); err != nil {
					t.Fatal(err)
				}
			}
			eventually(t, tc.reason, inState(w, kind, StateTooLarge))
			if _, message := w.State(kind); !strings.Contains(message, kind.String()) {
				t.Errorf("want a message about the kind, got %q", message)
			}
			if _, err := w.List(kind); !errors.Is(err, ErrNotSynced) {
				t.Errorf("want ErrNotSynced, got %v", err)
			}
			if objects, bytes := w.used.objects.Load(), w.used.bytes.Load(); objects != 0 || bytes != 0 {
				t.Errorf("want nothing to be kept, got %d objects of %d bytes", objects, bytes)
			}
			for i := range 12 {
				if err := c.Delete(t.Context(), widget(kind, fmt.Sprintf("w%d", i))); err != nil {
					t.Fatal(err)
				}
			}
			eventually(t, "it comes back when it is small again", inState(w, kind, StateSynced))
			w.Set("test")
			if objects, bytes := w.used.objects.Load(), w.used.bytes.Load(); objects != 0 || bytes != 0 {
				t.Errorf("want nothing to be counted of a kind that is not watched, got %d objects of %d bytes", objects, bytes)
			}
		})
	}
}

// TestEndlessAnswersEnd lists from a server that never comes to an end.
func TestEndlessAnswersEnd(t *testing.T) {
	for name, tc := range map[string]struct {
		stream bool
		item   func(n int64) string
	}{
		"Pages":      {item: func(n int64) string { return listItem(fmt.Sprint(n)) }},
		"EmptyPages": {item: func(int64) string { return "" }},
		"SamePages":  {item: func(int64) string { return listItem("same") }},
		"Stream":     {stream: true, item: func(n int64) string { return listItem(fmt.Sprint(n)) }},
	} {
		t.Run(name, func(t *testing.T) {
			var n atomic.Int64
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				switch watch := r.URL.Query().Get("watch") != ""; {
				case watch && tc.stream:
					for r.Context().Err() == nil {
						if _, err := fmt.Fprintf(w, `{"type":"ADDED","object":%s}`+"\n", tc.item(n.Add(1))); err != nil {
							return
						}
					}
				case watch:
					http.Error(w, "", http.StatusBadRequest)
				default:
					_, _ = fmt.Fprintf(w, `{"apiVersion":"v1","kind":"ConfigMapList","metadata":{"resourceVersion":"1","continue":"%d"},"items":[%s]}`,
						n.Add(1), tc.item(n.Load()))
				}
			}))
			t.Cleanup(server.Close)
			w, stop := start(t, &rest.Config{Host: server.URL, QPS: -1}, func(Event) {}, func(o *Options) {
				o.PerKind.Objects, o.MinBackoff = 50, time.Hour
			})
			w.Set("test", configMaps)
			eventually(t, "the kind is too large", inState(w, configMaps, StateTooLarge))
			if !tc.stream && n.Load() > 60 {
				t.Errorf("want no more to be looked at than may be kept, got %d", n.Load())
			}
			stop()
		})
	}
}

func listItem(name string) string {
	return fmt.Sprintf(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"namespace":"default","name":"a%s","uid":"u","resourceVersion":"1"}}`, name)
}
