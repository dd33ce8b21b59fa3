package toolgate

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"runtime/debug"

	"toolgate/internal/host"
)

func init() {
	host.Run = run
	host.Schema = func(t reflect.Type) (map[string]any, error) { return schemaOf(t, input) }
	host.Decode = readAll
	host.Encode = func(value any) (string, error) {
		text, err := encode(value)
		return valid(string(text)), err
	}
}

// run runs one call. It returns, unless the tool ends the program or uses up its memory.
func run(outside host.Host, request host.Call) (result string, failure *host.Failure) {
	call := &Call{call: request, host: outside}
	defer func() {
		if cause := recover(); cause != nil {
			call.Logf(Error, "panic: %v\n%s", cause, debug.Stack())
			result, failure = "", failureOf(fmt.Errorf("the tool panicked: %v", cause))
		}
	}()
	for _, tool := range registered {
		if tool.name != request.Tool || tool.run == nil {
			continue
		}
		value, err := tool.run(call)
		if err != nil {
			return "", failureOf(err)
		}
		text, err := encode(value)
		if err != nil {
			call.Logf(Error, "the result has no JSON form: %v", err)
			return "", failureOf(fmt.Errorf("the result has no JSON form: %w", err))
		}
		return valid(string(text)), nil
	}
	return "", failureOf(InvalidArguments("this plugin has no server tool %q", request.Tool))
}

// encode writes a value as JSON. It is not for HTML, so `<`, `>` and `&` stay as they are.
func encode(value any) (json.RawMessage, error) {
	text := &bytes.Buffer{}
	encoder := json.NewEncoder(text)
	encoder.SetEscapeHTML(false)
	err := encoder.Encode(value)
	return bytes.TrimSuffix(text.Bytes(), []byte("\n")), err
}

// declarations lists the tools as the interface has them.
func declarations() []host.Tool {
	tools := make([]host.Tool, 0, len(registered))
	for _, tool := range registered {
		tools = append(tools, host.Tool{
			Name:        tool.name,
			Description: valid(tool.description),
			Parameters:  valid(string(tool.parameters)),
			Executor:    tool.executor,
			Gated:       tool.gated,
			Streaming:   tool.streaming,
			Options:     valid(string(mustEncode(tool.options))),
		})
	}
	return tools
}
