//go:build wasip1

// Package export_toolgate_plugin_server implements a generated export. The generator chose its name.
package export_toolgate_plugin_server

import (
	"toolgate/internal/bindings/toolgate_plugin_tool_types"
	types "toolgate/internal/wit/types"
)

// Result is the outcome of a call.
type Result = types.Result[string, toolgate_plugin_tool_types.Failure]

// Carry runs one call. The SDK sets it when it starts.
var Carry func(call toolgate_plugin_tool_types.Call) Result

// Run is the export of that name.
func Run(call toolgate_plugin_tool_types.Call) Result {
	return Carry(call)
}
