// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package verdict

import (
	"fmt"

	lua "github.com/yuin/gopher-lua"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// runLua runs a health check as Argo CD does: with the object as the global obj, and with no libraries but the base
// library and that of tables.
func runLua(script string, object *unstructured.Unstructured) (string, error) {
	state := lua.NewState(lua.Options{SkipOpenLibs: true})
	defer state.Close()
	for name, open := range map[string]lua.LGFunction{lua.BaseLibName: lua.OpenBase, lua.TabLibName: lua.OpenTable} {
		if err := state.CallByParam(lua.P{Fn: state.NewFunction(open), Protect: true}, lua.LString(name)); err != nil {
			return "", err
		}
	}
	state.SetGlobal("obj", luaValue(state, object.Object))
	if err := state.DoString(script); err != nil {
		return "", err
	}
	result, ok := state.Get(-1).(*lua.LTable)
	if !ok {
		return "", fmt.Errorf("the health check returned %v", state.Get(-1))
	}
	if _, ok := result.RawGetString("message").(lua.LString); !ok {
		return "", fmt.Errorf("the health check returned the message %v", result.RawGetString("message"))
	}
	return lua.LVAsString(result.RawGetString("status")), nil
}

func luaValue(state *lua.LState, v any) lua.LValue {
	switch v := v.(type) {
	case string:
		return lua.LString(v)
	case bool:
		return lua.LBool(v)
	case int64:
		return lua.LNumber(v)
	case float64:
		return lua.LNumber(v)
	case []any:
		table := state.CreateTable(len(v), 0)
		for _, e := range v {
			table.Append(luaValue(state, e))
		}
		return table
	case map[string]any:
		table := state.CreateTable(0, len(v))
		for key, e := range v {
			table.RawSetString(key, luaValue(state, e))
		}
		return table
	}
	return lua.LNil
}
