// Package host is the seam between the SDK and what is on the other side: a real host, or a test.
package host

// Host is what a call may tell its host, and ask it.
type Host interface {
	// Progress takes one report; data is a JSON text, or nil.
	Progress(message string, fraction *float64, data *string)
	// Log takes one line; levels are those of the interface, 0 (debug) to 3 (error).
	Log(level uint8, message string)
	// StopRequested says whether the call should come to its end.
	StopRequested() bool
}

// Call is one call as it came over the interface.
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

// Failure is why a call has no result.
type Failure struct {
	Kind    uint8
	Message string
}

// Tool is one declaration as it goes over the interface.
type Tool struct {
	Name        string
	Description string
	Parameters  string // a JSON Schema
	Executor    uint8  // server, human, client, provider
	Gated       bool
	Streaming   bool
	Options     string // a JSON object
}

// Run carries out a call of a server tool. Package toolgate sets it.
var Run func(Host, Call) (result string, failure *Failure)

// Declared lists the tools that were registered, and what is wrong with them. Package toolgate sets it.
var Declared func() (tools []Tool, findings []string)
