// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package dump

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

func TestRedact(t *testing.T) {
	for name, tc := range map[string]struct{ reason, in, want string }{
		"Plain":    {reason: "What is no credential stays.", in: `cannot get the Secret "default/w1-kubeconfig": not found`, want: `cannot get the Secret "default/w1-kubeconfig": not found`},
		"Flag":     {reason: "Not everything about tokens is one.", in: "--allowed-token-endpoints=https://sts.test.dev", want: "--allowed-token-endpoints=https://sts.test.dev"},
		"JWT":      {reason: "A ServiceAccount's token is one wherever it stands.", in: "got eyJhbGciOi.eyJpc3MiOi.c2ln-x_y, sorry", want: "got <removed>, sorry"},
		"Bearer":   {reason: "The word stays, what follows goes.", in: "Authorization: Bearer hunter2-bearer", want: "Authorization: Bearer <removed>"},
		"URL":      {reason: "The host stays.", in: "dial https://admin:hunter2@db.test.dev:6443/x", want: "dial https://<removed>@db.test.dev:6443/x"},
		"PEM":      {reason: "A key goes as a whole.", in: "a\n-----BEGIN EC PRIVATE KEY-----\nhunter2\n-----END EC PRIVATE KEY-----\nb", want: "a\n<removed>\nb"},
		"CutPEM":   {reason: "One whose end is missing goes to the end.", in: "-----BEGIN PRIVATE KEY-----\nhunter2", want: "<removed>"},
		"Escaped":  {reason: "Logs have line breaks escaped.", in: `{"m":"-----BEGIN CERTIFICATE-----\nhunter2\n-----END CERTIFICATE-----\n"}`, want: `{"m":"<removed>\n"}`},
		"JSON":     {reason: "A field that is called so.", in: `{"password":"hunter2","user":"x"}`, want: `{"password":"<removed>","user":"x"}`},
		"Nested":   {reason: "JSON in a text of JSON.", in: `{"m":"{\"clientSecret\": \"hunter2\"}"}`, want: `{"m":"{\"clientSecret\": \"<removed>\"}"}`},
		"YAML":     {reason: "Lines of a kubeconfig.", in: "token: hunter2\nclient-key-data: aHVudGVyMg==", want: "token: <removed>\nclient-key-data: <removed>"},
		"Query":    {reason: "The next field stays.", in: "?access_token=hunter2&x=1", want: "?access_token=<removed>&x=1"},
		"AWS":      {reason: "Keys of clouds have a form.", in: "key AKIAIOSFODNN7EXAMPLE is not allowed", want: "key <removed> is not allowed"},
		"Variable": {reason: "Environment in a message.", in: "AWS_SECRET_ACCESS_KEY=hunter2 go", want: "AWS_SECRET_ACCESS_KEY=<removed> go"},
	} {
		t.Run(name, func(t *testing.T) {
			got := Redact(tc.in)
			if got != tc.want {
				t.Errorf("%s want %q, got %q", tc.reason, tc.want, got)
			}
			if again := Redact(got); again != got {
				t.Errorf("what was redacted stays as it is; want %q, got %q", got, again)
			}
		})
	}
}

func TestManagerFlags(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "reference", "flags.md"))
	if err != nil {
		t.Fatal(err)
	}
	var documented []string
	for _, match := range regexp.MustCompile("(?m)^\\| `--([a-z-]+)`").FindAllStringSubmatch(string(page), -1) {
		documented = append(documented, match[1])
	}
	known := managerFlags()
	slices.Sort(documented)
	slices.Sort(known)
	if !slices.Equal(documented, known) {
		t.Errorf("docs/reference/flags.md has the flags\n%s\nand a dump keeps those of\n%s", strings.Join(documented, " "), strings.Join(known, " "))
	}
}
