package toolgate

import (
	"strings"

	bindings "toolgate/internal/bindings/toolgate_plugin_host"
	wire "toolgate/internal/bindings/toolgate_plugin_tool_types"
	_ "toolgate/internal/bindings/wit_exports" // the exported functions
	catalog "toolgate/internal/exports/export_toolgate_plugin_catalog"
	server "toolgate/internal/exports/export_toolgate_plugin_server"
	"toolgate/internal/host"
	types "toolgate/internal/wit/types"
)

func init() {
	catalog.Declared = tools
	server.Carry = carry
}

// tools lists the declarations. The host finds mistakes in them, except a type without a schema.
func tools() []wire.Tool {
	for _, tool := range registered {
		if len(tool.problems) > 0 {
			panic(tool.name + ": " + strings.Join(tool.problems, "; "))
		}
	}
	declared := declarations()
	tools := make([]wire.Tool, 0, len(declared))
	for _, tool := range declared {
		approval := wire.ApprovalAuto
		if tool.Gated {
			approval = wire.ApprovalRequiresApproval
		}
		tools = append(tools, wire.Tool{
			Name: tool.Name, Description: tool.Description, Parameters: tool.Parameters, Executor: tool.Executor,
			Approval: approval, Streaming: tool.Streaming, Options: tool.Options,
		})
	}
	return tools
}

func carry(call wire.Call) server.Result {
	result, failure := run(outside{}, host.Call{
		ID: call.Id, Tool: call.Tool, Arguments: call.Arguments, IdempotencyKey: call.IdempotencyKey,
		Attempt: call.Attempt, Scope: call.Scope,
	})
	if failure == nil {
		return types.Ok[string, wire.Failure](result)
	}
	switch failure.Kind {
	case host.InvalidArguments:
		return types.Err[string](wire.MakeFailureInvalidArguments(failure.Message))
	case host.Unavailable:
		return types.Err[string](wire.MakeFailureUnavailable(failure.Message))
	default:
		return types.Err[string](wire.MakeFailureFailed(failure.Message))
	}
}

// outside is the host of a real call.
type outside struct{}

func (outside) Progress(message string, fraction *float64, data *string) {
	update := bindings.Update{Message: message, Fraction: types.None[float64](), Data: types.None[string]()}
	if fraction != nil {
		update.Fraction = types.Some(*fraction)
	}
	if data != nil {
		update.Data = types.Some(*data)
	}
	bindings.Progress(update)
}

func (outside) Log(level uint8, message string) { bindings.Log(level, message) }

func (outside) StopRequested() bool { return bindings.StopRequested() }
