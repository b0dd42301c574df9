// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package verdict

import (
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/masthead-dev/masthead/internal/test/testenv"
)

// luaProgram runs a health check as Argo CD does: with the object as the global obj, and with no libraries but the base
// library and that of tables.
const luaProgram = `obj = %s
package, require, string, math, os, io, debug, coroutine, channel = nil
local health = (function() %s
end)()
assert(type(health.message) == "string", "the health check returned no message")
print(health.status)`

// interpreter is the path of the interpreter that Argo CD uses, as a program: nothing of ours depends on it.
var interpreter = sync.OnceValues(func() (string, error) { //nolint:gochecknoglobals // It is built once.
	out, err := exec.Command(filepath.Join(testenv.Root(), "hack", "tool.sh"), "glua").Output()
	return strings.TrimSpace(string(out)), err
})

func runLua(script string, object *unstructured.Unstructured) (string, error) {
	glua, err := interpreter()
	if err != nil {
		return "", fmt.Errorf("cannot build glua: %w", err)
	}
	out, err := exec.Command(glua, "-e", fmt.Sprintf(luaProgram, luaLiteral(object.Object), script)).CombinedOutput()
	if _, failed := errors.AsType[*exec.ExitError](err); failed {
		return "", fmt.Errorf("%w: %s", err, out)
	}
	return strings.TrimSpace(string(out)), err
}

func luaLiteral(v any) string {
	var out strings.Builder
	switch v := v.(type) {
	case string:
		for i := range len(v) {
			fmt.Fprintf(&out, `\%03d`, v[i])
		}
		return `"` + out.String() + `"`
	case bool, int64, float64:
		return fmt.Sprint(v)
	case []any:
		for _, e := range v {
			out.WriteString(luaLiteral(e) + ",")
		}
		return "{" + out.String() + "}"
	case map[string]any:
		for key, e := range v {
			out.WriteString("[" + luaLiteral(key) + "]=" + luaLiteral(e) + ",")
		}
		return "{" + out.String() + "}"
	}
	return "nil"
}
