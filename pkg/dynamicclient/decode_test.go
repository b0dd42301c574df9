// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package dynamicclient

import (
	"bytes"
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
)

const claim = `{"apiVersion":"database.acmeco.org/v1alpha1","kind":"MySQLInstanceRequirement","metadata":{"annotations":{"a":"b\\\"}{"},"creationTimestamp":"2026-01-01T00:00:00Z",` +
	`"finalizers":["agent.masthead.dev/requirement"],"generation":2,"labels":{"app.kubernetes.io/name":"shop","team":"a"},"managedFields":[{"apiVersion":"database.acmeco.org/v1alpha1",` +
	`"fieldsType":"FieldsV1","fieldsV1":{"f:metadata":{"f:finalizers":{".":{},"v:\"agent.masthead.dev/requirement\"":{}}},"f:spec":{".":{},"f:storageGB":{},"f:version":{},"f:parameters":{".":{},"f:size":{}}}},` +
	`"manager":"masthead","operation":"Update","time":"2026-01-01T00:00:00Z"}],"name":"sql","namespace":"default","resourceVersion":"1234","uid":"6a1bd2ce-9b5c-4e0c-8d61-2d3a4f5b6c7d"},` +
	`"spec":{"parameters":{"size":"small","ratio":0.5},"storageGB":20,"version":"8"},"status":{"address":"10.0.0.1","conditions":[{"lastTransitionTime":"2026-01-01T00:00:00Z","reason":"Available","status":"True","type":"Ready"}]}}`

// jsonSerializers returns client-go's JSON serializers and ours.
func jsonSerializers(tb testing.TB) (theirs, ours runtime.SerializerInfo) {
	tb.Helper()
	base := dynamic.ConfigFor(&rest.Config{}).NegotiatedSerializer
	theirs, ok := runtime.SerializerInfoForMediaType(base.SupportedMediaTypes(), runtime.ContentTypeJSON)
	if !ok {
		tb.Fatal("client-go has no serializer for JSON")
	}
	ours, _ = runtime.SerializerInfoForMediaType(codecs{base}.SupportedMediaTypes(), runtime.ContentTypeJSON)
	return theirs, ours
}

// sameObject fails unless both serializers decode data to the same result.
func sameObject(t *testing.T, data []byte) {
	t.Helper()
	theirs, ours := jsonSerializers(t)
	for name, into := range map[string]func() runtime.Object{
		"nothing":         func() runtime.Object { return nil },
		"an Unstructured": func() runtime.Object { return &unstructured.Unstructured{} },
		"a list":          func() runtime.Object { return &unstructured.UnstructuredList{} },
	} {
		want, wantGVK, wantErr := theirs.Serializer.Decode(data, nil, into())
		got, gotGVK, gotErr := ours.Serializer.Decode(data, nil, into())
		if (wantErr == nil) != (gotErr == nil) {
			t.Fatalf("into %s, client-go says %v, and we say %v", name, wantErr, gotErr)
		}
		if wantErr != nil {
			continue
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("into %s\n-client-go, +we:\n%s", name, diff)
		}
		if !reflect.DeepEqual(wantGVK, gotGVK) {
			t.Errorf("into %s, client-go says that it is %v, and we say %v", name, wantGVK, gotGVK)
		}
	}
}

func objects() map[string]string {
	return map[string]string{
		"Claim":        claim,
		"Status":       `{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"too old resource version","reason":"Expired","code":410}`,
		"Bookmark":     `{"kind":"Widget","apiVersion":"example.org/v1","metadata":{"resourceVersion":"77","creationTimestamp":null}}`,
		"List":         `{"kind":"WidgetList","apiVersion":"example.org/v1","metadata":{"resourceVersion":"7"},"items":[` + claim + `]}`,
		"EmptyList":    `{"kind":"WidgetList","apiVersion":"example.org/v1","items":[]}`,
		"NoKind":       `{"apiVersion":"example.org/v1","metadata":{"name":"a"}}`,
		"NoVersion":    `{"kind":"Widget","metadata":{"name":"a"}}`,
		"KindNoString": `{"kind":7,"apiVersion":"v1"}`,
		"TwoSlashes":   `{"kind":"Widget","apiVersion":"a/b/c"}`,
		"Null":         `null`,
		"Text":         `"Widget"`,
		"Twice":        `{"kind":"A","kind":"B","apiVersion":"v1"}`,
		"Case":         `{"Kind":"A","apiVersion":"v1"}`,
		"Trailing":     `{"kind":"A","apiVersion":"v1"} {}`,
		"BigNumber":    `{"kind":"A","apiVersion":"v1","spec":{"n":12345678901234567890,"f":1e3,"i":-5}}`,
		"Broken":       `{"kind":"A","apiVersion":"v1"`,
		"Empty":        ``,
	}
}

func TestDecodeIsClientGos(t *testing.T) {
	for name, data := range objects() {
		t.Run(name, func(t *testing.T) { sameObject(t, []byte(data)) })
	}
}

func TestCommonObjectTakesTheShortWay(t *testing.T) {
	_, ours := jsonSerializers(t)
	refusing := objectSerializer{nil}
	got, _, err := refusing.Decode([]byte(claim), nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	want, _, err := ours.Serializer.Decode([]byte(claim), nil, &unstructured.Unstructured{})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("An ordinary object must not need client-go's serializer.\n-want, +got:\n%s", diff)
	}
}

func events() map[string]string {
	return map[string]string{
		"Added":        `{"type":"ADDED","object":` + claim + `}`,
		"Newline":      `{"type":"MODIFIED","object":` + claim + "}\n",
		"OtherOrder":   `{"object":` + claim + `,"type":"DELETED"}`,
		"Spaces":       `{ "type": "ADDED", "object": ` + claim + ` }`,
		"More":         `{"type":"ADDED","object":{"kind":"A"},"more":{}}`,
		"Twice":        `{"type":"ADDED","object":{"kind":"A"},"object":{"kind":"B"}}`,
		"Escaped":      `{"type":"ADD\u0045D","object":{}}`,
		"NoObject":     `{"type":"ADDED"}`,
		"NullObject":   `{"type":"ADDED","object":null}`,
		"TextObject":   `{"type":"ADDED","object":"}"}`,
		"Unterminated": `{"type":"ADDED","object":{"a":"}}`,
		"Empty":        ``,
	}
}

// sameEvent fails unless both serializers decode an event, and then the object in it, to the same result.
func sameEvent(t *testing.T, data []byte) {
	t.Helper()
	theirs, ours := jsonSerializers(t)
	decode := func(info runtime.SerializerInfo) (string, runtime.Object, error) {
		var event metav1.WatchEvent
		// Ours writes into the text.
		if _, _, err := info.StreamSerializer.Decode(bytes.Clone(data), nil, &event); err != nil {
			return "", nil, err
		}
		obj, err := runtime.Decode(info.Serializer, event.Object.Raw)
		if u, ok := obj.(*unstructured.Unstructured); ok {
			// TestUnreadManagersAreCut covers which managedFields are kept.
			if metadata, ok := u.Object["metadata"].(map[string]any); ok {
				delete(metadata, "managedFields")
			}
		}
		return event.Type, obj, err
	}
	wantType, want, wantErr := decode(theirs)
	gotType, got, gotErr := decode(ours)
	if wantErr != nil && gotErr == nil && bytes.Contains(data, []byte(`"managedFields":[`)) {
		return // The invalid part may be one that is cut.
	}
	if (wantErr == nil) != (gotErr == nil) {
		t.Fatalf("client-go says %v, and we say %v", wantErr, gotErr)
	}
	if wantErr != nil {
		return
	}
	if wantType != gotType {
		t.Errorf("client-go says that it is %q, and we say %q", wantType, gotType)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-client-go, +we:\n%s", diff)
	}
}

func TestEventIsClientGos(t *testing.T) {
	for name, data := range events() {
		t.Run(name, func(t *testing.T) { sameEvent(t, []byte(data)) })
	}
	if _, _, ok := split([]byte(events()["Added"])); !ok {
		t.Error("An event as API servers write it must not need client-go's serializer.")
	}
}

func FuzzDecode(f *testing.F) {
	for _, data := range objects() {
		f.Add([]byte(data))
	}
	f.Fuzz(func(t *testing.T, data []byte) { sameObject(t, data) })
}

func FuzzEvent(f *testing.F) {
	for _, data := range events() {
		f.Add([]byte(data))
	}
	f.Fuzz(func(t *testing.T, data []byte) { sameEvent(t, data) })
}

func BenchmarkEvent(b *testing.B) {
	data := []byte(events()["Added"])
	theirs, ours := jsonSerializers(b)
	for name, info := range map[string]runtime.SerializerInfo{"ClientGo": theirs, "Ours": ours} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				var event metav1.WatchEvent
				// Ours writes into the text.
				if _, _, err := info.StreamSerializer.Decode(bytes.Clone(data), nil, &event); err != nil {
					b.Fatal(err)
				}
				if _, err := runtime.Decode(info.Serializer, event.Object.Raw); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
