// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package terminal

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"unicode"
	"unicode/utf16"

	"sigs.k8s.io/yaml"
)

// WriteJSON writes a value as JSON. Terminal control characters are escaped, so the text keeps its meaning without
// effect.
func WriteJSON(w io.Writer, value any) error {
	data, err := json.MarshalIndent(value, "", "  ")
	if err != nil {
		return fmt.Errorf("cannot encode JSON: %w", err)
	}
	if _, err := io.WriteString(w, escaped(string(data))+"\n"); err != nil {
		return fmt.Errorf("cannot write: %w", err)
	}
	return nil
}

// escaped writes invisible characters as JSON escapes. In a valid document, such characters occur only in strings,
// except for line breaks.
func escaped(document string) string {
	if !strings.ContainsFunc(document, obeyed) {
		return document
	}
	var b strings.Builder
	for _, c := range document {
		if !obeyed(c) {
			b.WriteRune(c)
			continue
		}
		for _, unit := range utf16.Encode([]rune{c}) {
			fmt.Fprintf(&b, `\u%04x`, unit)
		}
	}
	return b.String()
}

func obeyed(c rune) bool { return c != '\n' && !unicode.IsPrint(c) }

// WriteYAML writes a value as YAML. YAML has no escapes outside of quotes, so each line of each string is cleaned.
func WriteYAML(w io.Writer, value any) error {
	data, err := json.Marshal(value)
	if err != nil {
		return fmt.Errorf("cannot encode JSON: %w", err)
	}
	var parsed any
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.UseNumber()
	if err := decoder.Decode(&parsed); err != nil {
		return fmt.Errorf("cannot decode JSON: %w", err)
	}
	if data, err = yaml.Marshal(cleaned(parsed)); err != nil {
		return fmt.Errorf("cannot encode YAML: %w", err)
	}
	if _, err := w.Write(data); err != nil {
		return fmt.Errorf("cannot write: %w", err)
	}
	return nil
}

func cleaned(value any) any {
	switch v := value.(type) {
	case string:
		if !strings.ContainsFunc(v, obeyed) {
			return v
		}
		lines := strings.Split(v, "\n")
		for i := range lines {
			lines[i] = Clean(lines[i])
		}
		return strings.Join(lines, "\n")
	case []any:
		for i := range v {
			v[i] = cleaned(v[i])
		}
	case map[string]any:
		out := make(map[string]any, len(v))
		for key, field := range v {
			out[Clean(key)] = cleaned(field)
		}
		return out
	}
	return value
}
