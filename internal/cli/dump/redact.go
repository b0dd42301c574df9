// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package dump

import "regexp"

// removed replaces redacted text.
const removed = "<removed>"

// credentialPatterns are what credentials look like, wherever they stand. What a pattern keeps is its groups.
//
//nolint:gochecknoglobals // Constants.
var credentialPatterns = []*regexp.Regexp{
	// PEM, also with line breaks that were escaped.
	regexp.MustCompile(`()-----BEGIN [A-Z0-9 ]+-----[\s\S]*?(?:-----END [A-Z0-9 ]+-----|\z)`),
	// JSON Web Tokens, which ServiceAccounts have.
	regexp.MustCompile(`()\beyJ[\w-]{5,}\.[\w-]{5,}(?:\.[\w-]*)?`),
	// Authorization headers.
	regexp.MustCompile(`(?i)(\b(?:bearer|basic)\s+)[\w.~+/=-]{6,}`),
	// User names and passwords in URLs.
	regexp.MustCompile(`(://)[^/\s@"'<>]+(@)`),
	// Fields that are called like credentials, in JSON, YAML, queries and flags.
	regexp.MustCompile(`(?i)((?:passw(?:or)?d|passphrase|client[-_]?secret|[a-z]*token|(?:api|access|private|account)[-_]?key(?:[-_]?id)?|` +
		`secret[-_]?(?:access[-_]?)?key|client-key-data|client-certificate-data)\\?["']?\s*[:=]\s*\\?["']?)[^\s"'\\,;&}<]+`),
	// Keys of AWS and GitHub.
	regexp.MustCompile(`()\b(?:A[KS]IA[0-9A-Z]{16}|gh[pousr]_\w{20,}|github_pat_\w{20,})\b`),
}

// Redact removes what looks like credentials from a text.
func Redact(text string) string {
	for _, p := range credentialPatterns {
		text = p.ReplaceAllString(text, "${1}"+removed+"${2}")
	}
	return text
}

// redactAll redacts every text of a value out of an object, and returns the value.
func redactAll(value any) any {
	switch v := value.(type) {
	case string:
		return Redact(v)
	case []any:
		for i := range v {
			v[i] = redactAll(v[i])
		}
	case map[string]any:
		for key, field := range v {
			if text, ok := field.(string); ok && text != "" && Redact(key+": x") != key+": x" {
				field = removed // It is called like a credential.
			}
			v[key] = redactAll(field)
		}
	}
	return value
}
