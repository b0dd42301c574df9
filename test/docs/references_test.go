// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// says is why a message is not explained: it says itself what to correct.
const says = "says itself what to correct"

// notForUsers are the messages of references that are not explained, as no object shows them or for another reason.
var notForUsers = map[string]string{
	"the object was not read from an API server":                                         "a program's mistake",
	"cannot parse the path …":                                                            "it was parsed before",
	"cannot find the kind of …":                                                          "in the log of a provider",
	"cannot find the scope of …":                                                         "in the log of a provider",
	"not permitted":                                                                      "a class of errors, which has messages of its own",
	"cannot create the environment of the expression":                                    "a program's mistake",
	"cannot create the environment of the expressions":                                   "a program's mistake",
	"cannot create a program from it":                                                    "a program's mistake",
	"the controller of references requires the fleet":                                    "a program's mistake",
	"cannot create the controller …":                                                     "at start",
	"cannot watch the hub":                                                               "at start",
	"cannot watch EnrollmentClasses":                                                     "at start",
	"cannot create a client for cluster …":                                               "when a cluster is engaged",
	"cannot create clients for cluster …":                                                "when a cluster is engaged",
	"cannot watch the definitions of cluster …":                                          "when a cluster is engaged",
	"cannot watch cluster …":                                                             "when a cluster is engaged",
	"cannot create a patch of the condition":                                             "a program's mistake",
	"cannot decode the cached state of … of …":                                           "a program's mistake",
	"cannot write the condition of …":                                                    "there is no place to show it",
	"cannot get … …":                                                                     "tried again, and logged",
	"an object can have at most … references":                                            says,
	"a reference can have at most … variables":                                           says,
	"either resource, or variables and expression, are required":                         says,
	"toFieldPath is required with variables, and when is not for them":                   says,
	"… … is not valid":                                                                   says,
	"an object cannot reference itself":                                                  says,
	"namespace is required in a reference of a cluster-scoped object":                    says,
	"one of name, nameFieldPath and selector is required":                                says,
	"the selector is not valid":                                                          says,
	"the selector has no labels":                                                         says,
	"nameFieldPath must be metadata.name, or a field in spec and not in spec.references": says,
	"toFieldPath must be a field in spec, and not in spec.references":                    says,
	"the path is empty":                                                                  says,
	"the path is longer than … characters":                                               says,
	"the path cannot be parsed":                                                          says,
	"the path has … segments; it can have 1 to …":                                        says,
	"the index … is larger than …":                                                       says,
	"the separator of join must be a string literal of at most … bytes":                  says,
	"the text before .format must be a string literal, and a precision in it must have at most two digits": says,
	"calls of format cannot be nested":                                  says,
	"it is longer than … bytes":                                         says,
	"its value is of the type …, and must be of the type …":             says,
	"loops cannot be nested":                                            says,
	"map can take only the element, or a field of it":                   says,
	"the function … is not available in references":                     says,
	"more than one element has …":                                       says,
	"these objects reference each other: …, which references the first": says,
	"the object depends on others through more than … references":       says,
	"it has changed": "tried again at once",
	"cluster … answered with another object than …": "tried again, and logged",
}

// readMessages returns the texts of the errors that a file creates, as docs write them: … stands for what is filled
// in, and wrapped errors are left out.
func readMessages(t *testing.T, path, source string) []string {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), path, source, 0)
	if err != nil {
		t.Fatal(err)
	}
	verb := regexp.MustCompile(`%[+#]?[a-zA-Z]`)
	var out []string
	add := func(e ast.Expr) {
		lit, ok := e.(*ast.BasicLit)
		if !ok || lit.Kind != token.STRING {
			return
		}
		text, err := strconv.Unquote(lit.Value)
		if err != nil {
			t.Fatal(err)
		}
		text = strings.TrimSuffix(strings.TrimPrefix(strings.ReplaceAll(text, "%w: %w", ""), "%w: "), ": %w")
		text = verb.ReplaceAllString(text, "…")
		if text != "" {
			out = append(out, text)
		}
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CallExpr:
			name := ""
			switch f := n.Fun.(type) {
			case *ast.SelectorExpr:
				if x, ok := f.X.(*ast.Ident); ok {
					name = x.Name + "." + f.Sel.Name
				}
			case *ast.Ident:
				name = f.Name
			}
			if slices.Contains([]string{"errors.New", "fmt.Errorf", "invalid"}, name) {
				add(n.Args[0])
			}
		case *ast.CompositeLit:
			if kind, ok := n.Type.(*ast.Ident); ok && (kind.Name == "refused" || kind.Name == "explained") {
				last := n.Elts[len(n.Elts)-1]
				if call, ok := last.(*ast.CallExpr); ok {
					last = call.Args[0]
				}
				add(last)
			}
		}
		return true
	})
	return out
}

// TestMessagesOfReferencesAreExplained compares the table of messages in docs/references.md with the code: the table
// has each message that a user can see, and none that no longer exists.
func TestMessagesOfReferencesAreExplained(t *testing.T) {
	// A … in quotation marks counts as one without them.
	plain := func(s string) string { return strings.ReplaceAll(s, `"…"`, "…") }
	made := map[string]string{"the API server did not answer about spec.references[…]": "pkg/controllers/references/status.go"}
	for path, source := range files(t, ".go") {
		if strings.HasSuffix(path, "_test.go") || !regexp.MustCompile(`^pkg/(references|expression|controllers/references)/\w+\.go$`).MatchString(path) {
			continue
		}
		for _, m := range readMessages(t, path, source) {
			made[plain(m)] = path
		}
	}
	_, table, _ := strings.Cut(files(t, ".md")["docs/references.md"], "\n### Messages\n")
	table, _, _ = strings.Cut(table, "\n## ")
	explained := map[string]bool{}
	for line := range strings.Lines(table) {
		cells := strings.Split(line, " | ")
		if len(cells) != 3 || strings.HasPrefix(line, "| Message") || strings.HasPrefix(line, "|---") {
			continue
		}
		for _, m := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(cells[0], -1) {
			explained[plain(m[1])] = true
		}
	}
	if len(explained) < 40 {
		t.Fatalf("found only %d messages in docs/references.md", len(explained))
	}
	for _, m := range slices.Sorted(maps.Keys(made)) {
		if !explained[m] && notForUsers[m] == "" {
			t.Errorf("docs/references.md does not explain %q (%s)", m, made[m])
		}
	}
	for m := range notForUsers {
		if made[m] == "" {
			t.Errorf("%q is excused, and no code says it", m)
		}
	}
	for m := range explained {
		if made[m] == "" {
			t.Errorf("docs/references.md explains %q, which no code says", m)
		}
	}
}
