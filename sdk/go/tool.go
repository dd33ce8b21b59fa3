// Package toolgate makes tools for agents out of Go functions, as WebAssembly components for toolgate.
//
// A tool is a function over a struct of arguments, with its declaration beside it. The JSON Schema of the arguments is
// derived from the struct:
//
//	type Args struct {
//		Text string `json:"text" description:"The text to count."`
//	}
//
//	func count(call *toolgate.Call, args Args) (int, error) {
//		return len(strings.Fields(args.Text)), nil
//	}
//
//	func init() {
//		toolgate.Register(
//			toolgate.Server("word_count", "Counts the words of a text.", count, toolgate.ReadOnly()),
//		)
//	}
//
//	func main() {} // the host calls the tools; nothing runs by itself
//
// Every call runs in an instance of its own. Keep data that must outlast it elsewhere, for example with package
// toolgate/keyvalue. Test tools natively with go test and package toolgate/toolgatetest.
package toolgate

import (
	"encoding/json"
	"fmt"
	"reflect"
)

// The executors, as the interface numbers them.
const (
	executorServer uint8 = iota
	executorHuman
	executorClient
	executorProvider
)

// NoArguments is for tools without arguments.
type NoArguments struct{}

// Tool is a declaration and, for a server tool, a function. [Server], [Human], [Client] and [Provider] make one. [Register] lists
// it.
type Tool struct {
	name        string
	description string
	parameters  json.RawMessage
	executor    uint8
	gated       bool
	streaming   bool
	options     map[string]any
	run         func(call *Call) (any, error)
	problems    []string
}

// Server is a tool that the plugin itself runs, in the host's sandbox. The schema of R is the schema of the result, unless R is any
// or [json.RawMessage].
//
// Arguments that cannot be decoded into A end the call as invalid-arguments, before the function runs. So do arguments that the
// method Validate() error of A refuses, if it has one.
func Server[A, R any](name, description string, run func(*Call, A) (R, error), options ...ServerOption) *Tool {
	tool := declare[A](name, description, executorServer)
	tool.schema("result", reflect.TypeFor[R](), output)
	tool.run = func(call *Call) (any, error) {
		arguments, err := decode[A](call.call.Arguments)
		if err != nil {
			return nil, err
		}
		return run(call, arguments)
	}
	for _, option := range options {
		option.forServer(tool)
	}
	return tool
}

// Client is a tool that the program at the user's end runs, such as a page or a device. The host checks its result against the
// schema of R.
func Client[A, R any](name, description string, options ...ClientOption) *Tool {
	tool := declare[A](name, description, executorClient)
	tool.schema("result", reflect.TypeFor[R](), answer)
	for _, option := range options {
		option.forClient(tool)
	}
	return tool
}

// Human is a question to a person. The answer is the result, and fits the schema of R.
func Human[A, R any](name, description string, options ...HumanOption) *Tool {
	tool := declare[A](name, description, executorHuman)
	tool.schema("response", reflect.TypeFor[R](), answer)
	for _, option := range options {
		option.forHuman(tool)
	}
	return tool
}

// Provider is a tool that the model's provider runs inside its own stream. The host records its calls and never runs one.
func Provider[A any](name, description string, options ...ProviderOption) *Tool {
	tool := declare[A](name, description, executorProvider)
	for _, option := range options {
		option.forProvider(tool)
	}
	return tool
}

var registered []*Tool

// Register lists the tools of this plugin. Call it from init, because nothing runs main.
func Register(tools ...*Tool) {
	registered = append(registered, tools...)
}

func declare[A any](name, description string, executor uint8) *Tool {
	tool := &Tool{name: name, description: description, executor: executor, options: map[string]any{}}
	schema, err := schemaOf(reflect.TypeFor[A](), input)
	if err != nil {
		tool.problem("the arguments: %v", err)
		schema = map[string]any{"type": "object"}
	}
	tool.parameters = mustEncode(schema)
	return tool
}

// schema sets the schema of a type as an option, unless the type allows any JSON.
func (t *Tool) schema(key string, of reflect.Type, direction direction) {
	schema, err := schemaOf(of, direction)
	switch {
	case err != nil:
		t.problem("`%s`: %v", key, err)
	case len(schema) > 0:
		t.options[key] = schema
	}
}

func (t *Tool) problem(format string, args ...any) {
	t.problems = append(t.problems, fmt.Sprintf(format, args...))
}

// within returns an object among the options, and creates it if it is missing.
func (t *Tool) within(key string) map[string]any {
	object, ok := t.options[key].(map[string]any)
	if !ok {
		object = map[string]any{}
		t.options[key] = object
	}
	return object
}

func mustEncode(value any) json.RawMessage {
	text, err := encode(value)
	if err != nil {
		panic(fmt.Sprintf("toolgate: a declaration has no JSON form: %v", err))
	}
	return text
}
