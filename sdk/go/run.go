package toolgate

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"runtime/debug"
	"strings"

	"toolgate/internal/host"
)

func init() {
	host.Run = run
}

// run carries out one call. Whatever the tool does, this returns, unless the tool ends the program or uses up its memory.
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
		text, err := json.Marshal(value)
		if err != nil {
			call.Logf(Error, "the result has no JSON form: %v", err)
			return "", failureOf(fmt.Errorf("the result has no JSON form: %w", err))
		}
		return valid(string(text)), nil
	}
	return "", failureOf(InvalidArguments("this plugin has no server tool %q", request.Tool))
}

// decode reads the arguments. The host has checked them against the schema; what the schema cannot say is refused here.
func decode[A any](text string) (arguments A, err error) {
	if err := json.Unmarshal([]byte(text), &arguments); err != nil {
		return arguments, InvalidArguments("%s", explain(err))
	}
	if checked, ok := any(&arguments).(interface{ Validate() error }); ok {
		if err := checked.Validate(); err != nil {
			var failure *Failure
			if errors.As(err, &failure) {
				return arguments, err
			}
			return arguments, InvalidArguments("%w", err)
		}
	}
	return arguments, nil
}

// explain says where in the arguments the decoder stopped, and why, without words of Go.
func explain(err error) string {
	var mismatch *json.UnmarshalTypeError
	if errors.As(err, &mismatch) {
		place := "/" + strings.ReplaceAll(mismatch.Field, ".", "/")
		return fmt.Sprintf("%s: %s does not fit %s", place, mismatch.Value, mismatch.Type)
	}
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return "the arguments end in the middle"
	}
	return strings.TrimPrefix(err.Error(), "json: ")
}

// declarations lists what goes over the interface.
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
