// Package host is the boundary between the SDK and a real host or a test.
package host

import "reflect"

// Host is what a call can send to its host, and ask it.
type Host interface {
	// Progress takes one report. Data is a JSON text, or nil.
	Progress(message string, fraction *float64, data *string)
	// Log takes one line. The levels are those of the interface, 0 (debug) to 3 (error).
	Log(level uint8, message string)
	// StopRequested reports whether the call should end.
	StopRequested() bool
}

// Call is one call as the interface has it.
type Call struct {
	ID             string
	Tool           string
	Arguments      string // a JSON text
	IdempotencyKey string
	Attempt        uint32
	Scope          string // a JSON object
}

// Kinds of failures, as the interface numbers them.
const (
	InvalidArguments uint8 = iota
	Failed
	Unavailable
)

// Failure is the reason for a call without a result.
type Failure struct {
	Kind    uint8
	Message string
}

// Tool is one declaration as the interface has it.
type Tool struct {
	Name        string
	Description string
	Parameters  string // a JSON Schema
	Executor    uint8  // server, human, client, provider
	Gated       bool
	Streaming   bool
	Options     string // a JSON object
}

// Run runs a call of a server tool. Package toolgate sets it.
var Run func(Host, Call) (result string, failure *Failure)

// Declared lists the registered tools and their mistakes. Package toolgate sets it.
var Declared func() (tools []Tool, findings []string)

// Schema returns the JSON Schema of what Decode accepts for a type. An empty one allows any JSON. Package toolgate sets it.
var Schema func(reflect.Type) (map[string]any, error)

// Encode writes a value as JSON. Package toolgate sets it.
var Encode func(any) (string, error)

// Decode reads a JSON text into a value, as strictly as arguments. Package toolgate sets it.
var Decode func(string, reflect.Value) error
