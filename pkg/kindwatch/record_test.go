// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package kindwatch

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/masthead-dev/masthead/pkg/limits"
)

// appAnnotation makes an object of the tests one of which a note is kept.
const appAnnotation = "example.org/app"

// note is the Record of the tests: the app that an object says it belongs to, and one value in it.
type note struct{ app, value string }

func (n note) Equal(other Record) bool { return n == other }

func (n note) IndexKeys() []string {
	return []string{"app/" + n.app, "value/" + n.value, "app/" + n.app}
}

func (n note) Size() int64 { return int64(32 + len(n.app) + len(n.value)) }

// reduceToNote is the Reduce of the tests.
func reduceToNote(_ Kind, obj *unstructured.Unstructured) (Record, bool) {
	app, ok := obj.GetAnnotations()[appAnnotation]
	if !ok {
		return nil, false
	}
	value, _, _ := unstructured.NestedString(obj.Object, "data", "value")
	return note{app: app, value: value}, true
}

// noted is an object of which a note is kept if app is not empty.
func noted(name, uid, version, app, value string) *unstructured.Unstructured {
	u := object(name, uid, version)
	u.Object["data"] = map[string]any{"value": value}
	if app != "" {
		u.SetAnnotations(map[string]string{appAnnotation: app})
	}
	return u
}

// describe writes an event of a record down in one line.
func describe(e Event) string {
	if e.Entry == nil {
		return string(e.Type)
	}
	n, _ := e.Entry.Record.(note)
	out := fmt.Sprintf("%s %s/%s@%s %s=%s", e.Type, e.Entry.Key.Name, e.Entry.UID, e.Entry.ResourceVersion, n.app, n.value)
	if e.OldEntry != nil {
		old, _ := e.OldEntry.Record.(note)
		out += fmt.Sprintf(" was %s=%s", old.app, old.value)
	}
	if e.Relisted {
		out += " relisted"
	}
	if e.SelfInduced {
		out += " echo"
	}
	if e.Object != nil || e.Old != nil {
		out += " object"
	}
	return out
}

// notes returns a store that keeps notes, and the events that it emits.
func notes() (*store, *[]string) {
	events := &[]string{}
	s := newStore(configMaps, func(e Event) { *events = append(*events, describe(e)) }, func() {})
	s.reduce = reduceToNote
	return s, events
}

func TestRecordEvents(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		happen func(*store) error
		want   []string
		// version is the one that is known of the object afterwards.
		version string
	}{
		"Added": {
			reason: "What becomes a candidate is new, whether or not the object is.",
			happen: func(s *store) error { s.update(noted("b", "2", "11", "shop", "x")); return nil },
			want:   []string{"Added b/2@11 shop=x"}, version: "8",
		},
		"Changed": {
			reason:  "A record that says something else is an update.",
			happen:  func(s *store) error { s.update(noted("a", "1", "11", "shop", "new")); return nil },
			want:    []string{"Updated a/1@11 shop=new was shop=old"},
			version: "11",
		},
		"Equal": {
			reason:  "A change that the record does not show is not reported, but the version is kept.",
			happen:  func(s *store) error { s.update(noted("a", "1", "11", "shop", "old")); return nil },
			version: "11",
		},
		"Left": {
			reason: "An object that is no candidate any more is gone, and what is reported is what was known.",
			happen: func(s *store) error { s.update(noted("a", "1", "11", "", "new")); return nil },
			want:   []string{"Deleted a/1@8 shop=old"},
		},
		"Replaced": {
			reason:  "Another object of the same name is not an update of the first.",
			happen:  func(s *store) error { s.update(noted("a", "2", "11", "shop", "old")); return nil },
			want:    []string{"Deleted a/1@8 shop=old relisted", "Added a/2@11 shop=old"},
			version: "11",
		},
		"Deleted": {
			reason: "The end of an object is the end of its record.",
			happen: func(s *store) error { s.delete(noted("a", "1", "11", "shop", "new")); return nil },
			want:   []string{"Deleted a/1@8 shop=old"},
		},
		"PassedBy": {
			reason: "What is no candidate comes and goes without a word.",
			happen: func(s *store) error {
				s.update(noted("b", "2", "11", "", "x"))
				s.delete(noted("b", "2", "12", "", "x"))
				return nil
			},
			version: "8",
		},
		"ListedAgain": {
			reason:  "A list that brings the same says nothing new.",
			happen:  func(s *store) error { return s.replace(s.itemsFor(noted("a", "1", "11", "shop", "old")), "12") },
			version: "11",
		},
		"ListedWithout": {
			reason: "What a list does not have is gone.",
			happen: func(s *store) error { return s.replace(nil, "12") },
			want:   []string{"Deleted a/1@8 shop=old relisted"},
		},
		"ListedAsNoCandidate": {
			reason: "So is what a list has, but is no candidate any more.",
			happen: func(s *store) error { return s.replace(s.itemsFor(noted("a", "1", "11", "", "old")), "12") },
			want:   []string{"Deleted a/1@8 shop=old relisted"},
		},
		"ListedReplaced": {
			reason:  "A list tells another object of the same name, too.",
			happen:  func(s *store) error { return s.replace(s.itemsFor(noted("a", "2", "11", "shop", "old")), "12") },
			want:    []string{"Deleted a/1@8 shop=old relisted", "Added a/2@11 shop=old"},
			version: "11",
		},
		"ReducedOtherwise": {
			reason: "What is made of objects can change without them.",
			happen: func(s *store) error {
				s.reduce = func(Kind, *unstructured.Unstructured) (Record, bool) { return note{"shop", "otherwise"}, true }
				return s.replace(s.itemsFor(noted("a", "1", "8", "shop", "old")), "12")
			},
			want:    []string{"Updated a/1@8 shop=otherwise was shop=old"},
			version: "8",
		},
		"Echo": {
			reason: "What was written here is reported as such.",
			happen: func(s *store) error {
				s.observe(noted("a", "1", "11", "shop", "mine"))
				s.update(noted("a", "1", "11", "shop", "mine"))
				return nil
			},
			want:    []string{"Updated a/1@11 shop=mine was shop=old echo"},
			version: "11",
		},
		"EchoOfLeaving": {
			reason: "So is an object that was made no candidate here.",
			happen: func(s *store) error {
				s.observe(noted("a", "1", "11", "", "old"))
				s.update(noted("a", "1", "11", "", "old"))
				return nil
			},
			want: []string{"Deleted a/1@8 shop=old echo"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			s, events := notes()
			if err := s.replace(s.itemsFor(noted("a", "1", "8", "shop", "old")), "10"); err != nil {
				t.Fatal(err)
			}
			*events = nil
			if err := tc.happen(s); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, *events); diff != "" && len(tc.want)+len(*events) > 0 {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
			version := ""
			if i, _ := s.get(key("a")); i != nil {
				version = i.ResourceVersion
			}
			if version != tc.version {
				t.Errorf("%s want version %q, got %q", tc.reason, tc.version, version)
			}
			sameAsComputed(t, s)
		})
	}
}

func TestObservedRecords(t *testing.T) {
	for name, tc := range map[string]struct {
		reason  string
		observe *unstructured.Unstructured
		then    func(*store) error
		// shop and bank are the objects that are found under the two apps.
		shop, bank string
	}{
		"Nothing": {reason: "What is known is found.", observe: noted("a", "1", "7", "bank", ""), shop: "a@8"},
		"Moved":   {reason: "What was written is found where it is now, and nowhere else.", observe: noted("a", "1", "12", "bank", ""), bank: "a@12"},
		"Left":    {reason: "What was made no candidate is not found.", observe: noted("a", "1", "12", "", "")},
		"New":     {reason: "What was created is found.", observe: noted("0", "9", "12", "shop", ""), shop: "0@12 a@8"},
		"CaughtUp": {
			reason: "The watch is believed as soon as it has come that far.", observe: noted("a", "1", "12", "", ""),
			then: func(s *store) error { s.update(noted("a", "1", "13", "shop", "")); return nil }, shop: "a@13",
		},
		"StillBehind": {
			reason: "An event from before the write does not hide the write.", observe: noted("a", "1", "12", "", ""),
			then: func(s *store) error { s.update(noted("a", "1", "11", "shop", "")); return nil },
		},
		"Passed": {
			reason: "A watch that has come further knows better.", observe: noted("a", "1", "12", "bank", ""),
			then: func(s *store) error { s.advanceTo("20"); return nil }, shop: "a@8",
		},
	} {
		t.Run(name, func(t *testing.T) {
			s, _ := notes()
			if err := s.replace(s.itemsFor(noted("a", "1", "8", "shop", "")), "10"); err != nil {
				t.Fatal(err)
			}
			s.observe(tc.observe)
			if tc.then != nil {
				if err := tc.then(s); err != nil {
					t.Fatal(err)
				}
			}
			for app, want := range map[string]string{"shop": tc.shop, "bank": tc.bank} {
				if got := found(s, "app/"+app); got != want {
					t.Errorf("%s want %q under %q, got %q", tc.reason, want, app, got)
				}
			}
		})
	}
}

func found(s *store, indexKey string) string {
	items, _ := s.lookup(indexKey)
	slices.SortFunc(items, byKey)
	var out []string
	for _, i := range items {
		out = append(out, i.Key.Name+"@"+i.ResourceVersion)
	}
	return strings.Join(out, " ")
}

// sameAsComputed fails unless the index and the budget of a store are those that follow from its items.
func sameAsComputed(t *testing.T, s *store) {
	t.Helper()
	index, bytes := map[string][]types.NamespacedName{}, int64(0)
	for _, i := range s.known.items {
		bytes += i.size
		for _, k := range i.indexKeys {
			index[k] = append(index[k], i.Key)
		}
	}
	got := map[string][]types.NamespacedName{}
	for k, items := range s.known.index {
		for _, i := range items {
			if s.known.items[i.Key] != i {
				t.Errorf("want the index to have what is known of %s", i.Key)
			}
			got[k] = append(got[k], i.Key)
		}
	}
	for _, keys := range index {
		slices.SortFunc(keys, compareKeys)
	}
	if diff := cmp.Diff(index, got); diff != "" {
		t.Errorf("index (-computed +got):\n%s", diff)
	}
	objects := int64(len(s.known.items) + len(s.observed.items))
	bytes += s.observed.bytes()
	if s.budget.objects != objects || s.budget.bytes != bytes {
		t.Errorf("want %d objects of %d bytes counted, got %d of %d", objects, bytes, s.budget.objects, s.budget.bytes)
	}
}

// TestIndexIsWhatFollowsFromTheRecords does many things in no order.
func TestIndexIsWhatFollowsFromTheRecords(t *testing.T) {
	s, _ := notes()
	random := rand.New(rand.NewPCG(1, 2))
	pick := func(of ...string) string { return of[random.IntN(len(of))] }
	for version := 1; version < 3000; version++ {
		some := func() *unstructured.Unstructured {
			return noted(pick("a", "b", "c", "d", "e"), pick("1", "2"), strconv.Itoa(version), pick("", "x", "y"), pick("p", "q"))
		}
		var err error
		switch random.IntN(10) {
		case 0:
			err = s.replace(s.itemsFor(some(), some(), some(), some()), strconv.Itoa(version))
		case 1, 2:
			s.delete(some())
		case 3:
			s.advanceTo(strconv.Itoa(version))
		case 4:
			s.observe(some())
		default:
			s.update(some())
		}
		if err != nil {
			t.Fatal(err)
		}
		sameAsComputed(t, s)
		if t.Failed() {
			t.Fatalf("after %d steps", version)
		}
	}
}

func TestWhatIsNotKeptCountsByNumberOnly(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		bring  func(n int) *unstructured.Unstructured
		want   error
	}{
		"Few":        {reason: "A list may bring many objects that are not kept.", bring: func(n int) *unstructured.Unstructured { return noted("a"+strconv.Itoa(n%40), "1", "5", "", "x") }},
		"Many":       {reason: "But not any number.", bring: func(n int) *unstructured.Unstructured { return noted("a"+strconv.Itoa(n), "1", "5", "", "x") }, want: errTooMany},
		"Impossible": {reason: "What cannot be an object counts, too.", bring: func(n int) *unstructured.Unstructured { return noted("../"+strconv.Itoa(n), "1", "5", "shop", "x") }, want: errTooMany},
		"Kept":       {reason: "What is kept has a budget of its own.", bring: func(n int) *unstructured.Unstructured { return noted("a"+strconv.Itoa(n), "1", "5", "shop", "x") }, want: errTooLarge},
	} {
		t.Run(name, func(t *testing.T) {
			s, _ := notes()
			s.budget.listed, s.budget.perKind = 50, Limit{Objects: 50, Bytes: -1}
			var overflow error
			s.overflow = func(err error) { overflow = err }
			n := 100
			if tc.want == nil {
				n = 50
			}
			s.listing()
			for i := range n {
				got, err := s.arrivedEvent(tc.bring(i))
				if err == nil && got != nil && got.kept() && got.metadata != nil {
					t.Fatalf("want no object to be held, got %v", got)
				}
				if err != nil {
					break
				}
			}
			if overflow != tc.want { //nolint:errorlint // It is this one.
				t.Errorf("%s want %v, got %v", tc.reason, tc.want, overflow)
			}
			if objects := s.budget.objects; objects != 0 {
				t.Errorf("want nothing to be counted as kept before the list is complete, got %d", objects)
			}
		})
	}
}

// TestObjectsAreKeptAsTheyWereSent stores values that encoders of JSON change.
func TestObjectsAreKeptAsTheyWereSent(t *testing.T) {
	for name, value := range map[string]any{
		"integer": int64(9007199254740993), "negative": int64(math.MinInt64), "fraction": 0.1, "huge": 1e300, "beyond integers": 9.3e18,
		"text": "<a href=\"x\">&amp; \u2028 \x00 ü 🙂", "empty text": "", "null": nil, "bool": true,
		"empty list": []any{}, "empty map": map[string]any{}, "nested": []any{map[string]any{"a": []any{int64(1), nil}}},
	} {
		u := object("a", "1", "5")
		u.SetGroupVersionKind(configMaps.GroupVersionKind)
		u.Object["spec"] = map[string]any{"value": value}
		want := u.DeepCopy()
		s := newStore(configMaps, func(Event) {}, func() {})
		if err := s.replace(s.itemsFor(u), "6"); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		got, _ := s.get(objectKey(want))
		if diff := cmp.Diff(want.Object, got.Object().Object); diff != "" {
			t.Errorf("%s (-sent +kept):\n%s", name, diff)
		}
	}
}

// TestChargeOfObjects charges a large object for the memory that it takes when it is decoded.
func TestChargeOfObjects(t *testing.T) {
	for name, tc := range map[string]struct {
		value   any
		decoded bool
	}{
		"Small":           {value: "x"},
		"SmallAndDense":   {value: slices.Repeat([]any{map[string]any{}}, 1000)},
		"Large":           {value: strings.Repeat("x", smallObject), decoded: true},
		"LargeInJSON":     {value: strings.Repeat("\x01", smallObject)},
		"LargeWhenOpened": {value: slices.Repeat([]any{map[string]any{}}, 5000), decoded: true},
	} {
		u := object("a", "1", "5")
		u.Object["spec"] = map[string]any{"value": tc.value}
		s := newStore(configMaps, func(Event) {}, func() {})
		i, _ := s.convert(u)
		want := i.sizeOfPlace() + int64(len(i.metadata)+len(i.body))
		if tc.decoded {
			want = limits.Size(u.Object)
		}
		if i.size != want {
			t.Errorf("%s: want a charge of %d bytes, got %d", name, want, i.size)
		}
	}
}
