//go:build wasip1

// Package export_toolgate_plugin_catalog implements a generated export. The generator chose its name.
package export_toolgate_plugin_catalog

import "toolgate/internal/bindings/toolgate_plugin_tool_types"

// Declared lists the tools. The SDK sets it when it starts.
var Declared func() []toolgate_plugin_tool_types.Tool

// Tools is the export of that name.
func Tools() []toolgate_plugin_tool_types.Tool {
	return Declared()
}
