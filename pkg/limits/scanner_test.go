// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package limits

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
)

// scan feeds a text in chunks of a given size, and returns how many bytes were passed on.
func scan(s *Scanner, text string, chunk int) (int, error) {
	passed := 0
	for len(text) > 0 {
		n, err := s.Scan([]byte(text[:min(chunk, len(text))]))
		passed += n
		if err != nil {
			return passed, err
		}
		text = text[n:]
	}
	return passed, nil
}

func chunks() []int { return []int{1, 2, 3, 7, 64, 1 << 20} }

func TestScannerLimits(t *testing.T) {
	deep := func(n int) string { return strings.Repeat(`{"a":[`, n) + strings.Repeat(`]}`, n) }
	cases := map[string]struct {
		reason string
		limits Limits
		text   string
		want   Limit
	}{
		"Bytes":          {"A text of as many bytes as are allowed passes.", Limits{Bytes: 10}, `{"a":1234}`, ""},
		"OneByteMore":    {"One byte more does not.", Limits{Bytes: 10}, `{"a":12345}`, LimitBytes},
		"Space":          {"White space counts.", Limits{Bytes: 10}, strings.Repeat(" ", 11), LimitBytes},
		"EmptyObjects":   {"Empty objects cost most for their bytes.", Limits{Cost: 1 << 16}, `[` + strings.Repeat(`{},`, 1000), LimitCost},
		"EmptyArrays":    {"Empty arrays cost, too.", Limits{Cost: 1 << 14}, `[` + strings.Repeat(`[],`, 1000), LimitCost},
		"Zeros":          {"Numbers cost more than their bytes.", Limits{Cost: 1 << 14}, `[` + strings.Repeat(`0,`, 1000), LimitCost},
		"EmptyStrings":   {"So do strings.", Limits{Cost: 1 << 14}, `[` + strings.Repeat(`"",`, 1000), LimitCost},
		"ManyKeys":       {"And keys.", Limits{Cost: 1 << 14}, `{` + strings.Repeat(`"":0,`, 1000), LimitCost},
		"NotUTF8":        {"A byte that is not UTF-8 becomes three.", Limits{Cost: 5000}, `"` + strings.Repeat("\xff", 1000) + `"`, LimitCost},
		"ASCII":          {"One that is does not.", Limits{Cost: 5000}, `"` + strings.Repeat("x", 1000) + `"`, ""},
		"LongString":     {"A long string is cheap.", WithBytes(8 << 20), `"` + strings.Repeat("x", 2<<20) + `"`, ""},
		"Values":         {"So many values are allowed.", Limits{Values: 4}, `[1,2,3]`, ""},
		"OneValueMore":   {"And no more.", Limits{Values: 4}, `[1,2,3,4]`, LimitValues},
		"Depth":          {"So many levels are allowed.", Limits{Depth: 6}, deep(3), ""},
		"OneLevelMore":   {"And no more.", Limits{Depth: 5}, deep(3), LimitDepth},
		"DepthUnlimited": {"There is always a limit of levels.", Limits{}, deep(200), LimitDepth},
		"MostDepth":      {"It is 256.", Limits{}, deep(128), ""},
		"String":         {"A string may be so long.", Limits{String: 5}, `{"abcdefgh":"abcde"}`, ""},
		"LongerString":   {"And no longer.", Limits{String: 5}, `{"a":"abcdef"}`, LimitString},
		"Escapes":        {"Escapes count as they are written.", Limits{String: 5}, `"\u0041"`, LimitString},
		"Number":         {"A number may be so long.", Limits{String: 5}, `[12345]`, ""},
		"LongerNumber":   {"And no longer.", Limits{String: 5}, `[1234567]`, LimitString},
		"Key":            {"A key may be so long.", Limits{Key: 3}, `{"abc":"abcdefgh"}`, ""},
		"LongerKey":      {"And no longer.", Limits{Key: 3}, `{"abcd":0}`, LimitKey},
		"BraceInString":  {"A brace in a string opens nothing.", Limits{Depth: 1}, `{"a":"{{{{[[[["}`, ""},
		"EscapedQuote":   {"An escaped quote ends no string.", Limits{Depth: 1}, `{"a":"\"{{{{"}`, ""},
		"Garbage":        {"What is not JSON is refused.", Limits{}, "\x00\x01k8s\x00", LimitSyntax},
		"Protobuf":       {"So is protobuf.", Limits{}, "k8s\x00\n\x0c", LimitSyntax},
		"YAML":           {"And YAML, whose aliases amplify.", Limits{}, "a: &a [1,2]\nb: [*a,*a]\n", LimitSyntax},
		"Two":            {"And a second text.", Limits{}, `{} {}`, LimitSyntax},
		"ControlChar":    {"And a control character in a string.", Limits{}, "\"a\nb\"", LimitSyntax},
		"WrongBracket":   {"And a bracket that closes something else.", Limits{}, `{"a":[}`, LimitSyntax},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			for _, size := range chunks() {
				s := NewScanner("answer", tc.limits)
				n, err := scan(s, tc.text, size)
				var e *Error
				switch {
				case tc.want == "" && (err != nil || n != len(tc.text) || !s.Complete()):
					t.Errorf("%s\nin chunks of %d: want it to pass, got %d of %d bytes, complete %t: %v",
						tc.reason, size, n, len(tc.text), s.Complete(), err)
				case tc.want != "" && (!errors.As(err, &e) || e.Limit != tc.want):
					t.Errorf("%s\nin chunks of %d: want it refused for %s, got %v", tc.reason, size, tc.want, err)
				}
				if tc.want != "" {
					if n, again := s.Scan([]byte("{}")); n != 0 || !errors.Is(again, err) {
						t.Errorf("%s\nin chunks of %d: once refused, it must stay so, got %d %v", tc.reason, size, n, again)
					}
				}
			}
		})
	}
}

func TestStreamLimitsEachObject(t *testing.T) {
	cases := map[string]struct {
		reason, text string
		passed       int
		want         Limit
	}{
		"Many":      {"Each object is counted by itself.", strings.Repeat(`{"a":"0123456"}`+"\n", 20), 320, ""},
		"Joined":    {"Nothing need stand between them.", strings.Repeat(`{}`, 20), 40, ""},
		"TooLong":   {"One more byte is too many.", `{}{"a":"0123456789abcd"}`, 2, LimitBytes},
		"Nested":    {"An inner object is no end.", `{"a":[{},{},{},{},{}]}`, 0, LimitBytes},
		"Space":     {"White space counts.", "{}" + strings.Repeat(" ", 30), 2, LimitBytes},
		"NoObject":  {"An event is an object.", `{}1`, 2, LimitSyntax},
		"Separator": {"A stream is no list.", `{},{}`, 2, LimitSyntax},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			for _, size := range chunks() {
				s := NewStreamScanner("event", Limits{Bytes: 20})
				n, err := scan(s, tc.text, size)
				var e *Error
				if tc.want == "" && err != nil || tc.want != "" && (!errors.As(err, &e) || e.Limit != tc.want) {
					t.Errorf("%s\nin chunks of %d: want %q, got %v", tc.reason, size, tc.want, err)
				}
				if n < tc.passed || n > tc.passed+20 {
					t.Errorf("%s\nin chunks of %d: want %d bytes of good objects passed on, got %d", tc.reason, size, tc.passed, n)
				}
			}
		})
	}
}

func TestErrorsSayNothingThatTheServerSent(t *testing.T) {
	const secret = "hunter2hunter2"
	for _, l := range []Limits{{Bytes: 30}, {Cost: 30}, {Values: 1}, {Depth: 1}, {Key: 4}, {String: 4}, {}} {
		_, err := scan(NewScanner("list", l), `{"`+secret+`":["`+secret+`",{"a":"`+secret+`"}]}`+secret, 1<<20)
		if err == nil || strings.Contains(err.Error(), "hunter") || !errors.Is(err, ErrRefused) {
			t.Errorf("want a refusal without the text, got %v", err)
		}
	}
}

func TestBodyPassesOnWhatCameBefore(t *testing.T) {
	var reported error
	closed := false
	b := NewBody(t.Context(), closer{strings.NewReader(`{"a":1}` + "\n" + `{"a":2}` + "\n]"), &closed},
		NewStreamScanner("event", WithBytes(1000)), nil, func(err error) { reported = err })
	got, err := io.ReadAll(b)
	if !strings.HasPrefix(string(got), `{"a":1}`+"\n"+`{"a":2}`) || !errors.Is(err, ErrRefused) || !errors.Is(reported, ErrRefused) {
		t.Errorf("want two events and a refusal, got %q %v, reported %v", got, err, reported)
	}
	if err := b.Close(); err != nil || !closed {
		t.Errorf("the body must be closed, got %v", err)
	}
}

type closer struct {
	io.Reader
	closed *bool
}

func (c closer) Close() error { *c.closed = true; return nil }

type account struct {
	most, held int64
	closed     bool
}

var errFull = errors.New("full")

func (a *account) Hold(total int64) error {
	if total > a.most {
		return errFull
	}
	a.held = total
	return nil
}

func (a *account) Close() { a.closed = true }

func TestBodyIsCharged(t *testing.T) {
	text := `[` + strings.Repeat(`{},`, 1000) + `{}]`
	a := &account{most: 100_000}
	open := func(func(error)) Charge { return a }
	b := NewBody(t.Context(), io.NopCloser(strings.NewReader(text)), NewScanner("list", WithBytes(1<<20)), open, nil)
	if _, err := io.ReadAll(b); !errors.Is(err, errFull) {
		t.Errorf("an account without room must refuse the answer, got %v", err)
	}
	_ = b.Close()
	if !a.closed {
		t.Error("the account must be closed with the body")
	}
	a = &account{most: 10 << 20}
	ctx, done := WithDecoding(t.Context())
	b = NewBody(ctx, io.NopCloser(strings.NewReader(text)), NewScanner("list", WithBytes(1<<20)), open, nil)
	if got, err := io.ReadAll(b); err != nil || string(got) != text || a.held < 1000*costObject {
		t.Errorf("want the text, charged, got %d bytes, %v, %d charged", len(got), err, a.held)
	}
	_ = b.Close()
	if a.closed {
		t.Error("what is being decoded must stay charged")
	}
	if done(); !a.closed {
		t.Error("the account must be closed once it is decoded")
	}
}

func TestBodyIsAborted(t *testing.T) {
	r, w := io.Pipe()
	var abort func(error)
	open := func(f func(error)) Charge { abort = f; return &account{most: 1 << 20} }
	b := NewBody(t.Context(), r, NewScanner("list", WithBytes(1<<20)), open, nil)
	go func() { _, _ = w.Write([]byte("[")); abort(errFull) }()
	if _, err := io.ReadAll(b); !errors.Is(err, errFull) {
		t.Errorf("a pending read must return the error, got %v", err)
	}
}

// FuzzScanner compares the Scanner with encoding/json: a text that passes to its end is valid, a valid text passes
// unless it exceeds a limit, chunks make no difference, and no text that passes exceeds a limit.
func FuzzScanner(f *testing.F) {
	for _, text := range []string{
		``, ` `, `{}`, `[]`, `null`, `true`, `fals`, `-0.5e+7`, `01`, `1.`, `1e`, `"\u00e9\n"`, `"\x"`, "\"\x01\"", "\"\xff\"", `{"a":{"b":[1,"c",null]}}`,
		`{"a" 1}`, `{"a":1,}`, `[1,]`, `[1 2]`, `{"a":1}}`, `{}{}`, `"a`, `tru e`, `--1`, `{"a":[{},{},{"b":"0123456789"}]}`, "\ufeff{}",
		strings.Repeat("[", 40) + strings.Repeat("]", 40),
	} {
		f.Add([]byte(text), uint8(3))
	}
	limits := Limits{Bytes: 4096, Cost: 1 << 16, Values: 64, Depth: 32, Key: 32, String: 64}
	f.Fuzz(func(t *testing.T, text []byte, chunk uint8) {
		s := NewScanner("answer", limits)
		n, err := s.Scan(text)
		chunked := NewScanner("answer", limits)
		_, chunkedErr := scan(chunked, string(text), int(chunk)+1)
		tooLarge := errors.Is(err, ErrTooLarge) && errors.Is(chunkedErr, ErrTooLarge) // Of two limits, the one that is met first is reported.
		if fmt.Sprint(err) != fmt.Sprint(chunkedErr) && !tooLarge || err == nil && s.Complete() != chunked.Complete() {
			t.Fatalf("whole: %v, in chunks of %d: %v", err, int(chunk)+1, chunkedErr)
		}
		valid := json.Valid(text)
		switch {
		case err == nil && s.Complete() != valid:
			t.Fatalf("complete %t, but encoding/json says valid %t", s.Complete(), valid)
		case err != nil && !errors.Is(err, ErrTooLarge) && valid:
			t.Fatalf("encoding/json says valid, but %v", err)
		}
		if err == nil {
			exceedsNone(t, text, limits)
		}
		if n > len(text) || int64(n) > limits.Bytes {
			t.Fatalf("%d bytes passed", n)
		}
	})
}

// exceedsNone fails if what passed is over a limit, as encoding/json sees it.
func exceedsNone(t *testing.T, text []byte, l Limits) {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	depth, values := 0, int64(0)
	for {
		token, err := d.Token()
		if err != nil {
			break
		}
		switch token := token.(type) {
		case json.Delim:
			if token == '{' || token == '[' {
				depth++
				values++
			} else {
				depth--
			}
		case string:
			if len(token) > 3*max(l.Key, l.String) { // Three bytes for one that is not UTF-8.
				t.Fatalf("a string of %d bytes passed", len(token))
			}
		default:
			values++
		}
		if depth > l.Depth || values > l.Values {
			t.Fatalf("depth %d, %d values passed", depth, values)
		}
	}
	if int64(len(text)) > l.Bytes {
		t.Fatalf("%d bytes passed", len(text))
	}
}

func BenchmarkScanner(b *testing.B) {
	object := `{"apiVersion":"database.acmeco.org/v1alpha1","kind":"MySQL","metadata":{"annotations":{"a":"b"},"creationTimestamp":"2026-01-01T00:00:00Z",` +
		`"generation":2,"labels":{"app.kubernetes.io/name":"shop","team":"a"},"managedFields":[{"apiVersion":"database.acmeco.org/v1alpha1",` +
		`"fieldsType":"FieldsV1","fieldsV1":{"f:metadata":{"f:finalizers":{".":{}}},"f:spec":{".":{},"f:storageGB":{},"f:version":{}}},` +
		`"manager":"masthead","operation":"Update","time":"2026-01-01T00:00:00Z"}],"name":"sql","namespace":"default","resourceVersion":"1234",` +
		`"uid":"6a1bd2ce-9b5c-4e0c-8d61-2d3a4f5b6c7d"},"spec":{"parameters":{"size":"small","ratio":0.5},"storageGB":20,"version":"8"}}`
	for name, text := range map[string]string{
		"List":   `{"items":[` + strings.TrimSuffix(strings.Repeat(object+",", 500), ",") + `]}`,
		"String": `{"data":"` + strings.Repeat("YWJj", 1<<18) + `"}`,
		"Empty":  `[` + strings.TrimSuffix(strings.Repeat(`{},`, 10_000), ",") + `]`,
	} {
		b.Run(name, func(b *testing.B) {
			data := []byte(text)
			b.SetBytes(int64(len(data)))
			b.ReportAllocs()
			for b.Loop() {
				s := Scanner{limits: WithBytes(64 << 20).withoutZeros()}
				if _, err := s.Scan(data); err != nil || !s.Complete() {
					b.Fatal(err)
				}
			}
		})
	}
}
