//go:build !wasip1

// Package toolgatetest runs tools natively, without a host or WebAssembly.
//
//	func TestIt(t *testing.T) {
//		toolgatetest.Check(t)
//		run := toolgatetest.Run(t, "word_count", map[string]any{"text": "to be or not"})
//		run.WantResult(t, 4)
//	}
package toolgatetest

import (
	"encoding/json"
	"net/http"
	"reflect"
	"sync"
	"testing"

	"toolgate"
	"toolgate/internal/fake"
	"toolgate/internal/host"
)

// Store is a key-value store in memory that several calls can share. Its zero value is empty. Its methods Get and Set read and
// write a value outside of a call.
type Store = fake.Store

// Call is one call of a server tool. Only Tool is required.
type Call struct {
	// Tool is the tool's name.
	Tool string
	// Arguments is encoded as JSON; nil is {}. Nothing checks it against the tool's schema.
	Arguments any
	// ID and IdempotencyKey identify the call.
	ID, IdempotencyKey string
	// Attempt is the number of the attempt; 0 is the first one.
	Attempt uint32
	// Scope is the call's scope.
	Scope toolgate.Scope
	// StopAt makes StopRequested return true from its StopAt-th call on; 0 means never.
	StopAt int
	// Store is the store of toolgate/keyvalue; nil is an empty one.
	Store *Store
	// Config is the configuration of toolgate/config.
	Config map[string]string
	// HTTP answers the requests of toolgate/httpclient; nil denies them.
	HTTP http.Handler
	// Waits are the ends of a durable tool's waits for people, external systems and other tools, in order. Sleeps end at once and need none.
	Waits []End
}

// Update is one report of progress.
type Update struct {
	// Message is one line for people.
	Message string
	// Fraction is toolgate.Unknown if it was unknown.
	Fraction float64
	// Data is a JSON text, or empty.
	Data string
}

// Line is one line of the log.
type Line struct {
	// Level is the severity.
	Level toolgate.Level
	// Message is the text.
	Message string
}

// Result is the outcome of a call.
type Result struct {
	// Text is the JSON text of the result. It is empty without one.
	Text string
	// Failed means that there is no result.
	Failed bool
	// Kind is the kind of the failure.
	Kind toolgate.Kind
	// Message is the message of the failure.
	Message string
	// Updates is the reported progress, in order.
	Updates []Update
	// Log is the lines of the log, in order.
	Log []Line
	// Waits are the waits of a durable tool, in order.
	Waits []Wait
}

// Run makes a call with these arguments.
func Run(t testing.TB, tool string, arguments any) Result {
	t.Helper()
	return Call{Tool: tool, Arguments: arguments}.Run(t)
}

// Run makes the call.
func (c Call) Run(t testing.TB) Result {
	t.Helper()
	if c.Arguments == nil {
		c.Arguments = struct{}{}
	}
	arguments, err := json.Marshal(c.Arguments)
	if err != nil {
		t.Fatalf("the arguments have no JSON form: %v", err)
	}
	scope, err := json.Marshal(c.Scope)
	if err != nil {
		t.Fatalf("the scope has no JSON form: %v", err)
	}
	call := host.Call{
		ID: or(c.ID, "call-1"), Tool: c.Tool, Arguments: string(arguments), Scope: string(scope),
		IdempotencyKey: or(c.IdempotencyKey, "key-1"), Attempt: max(c.Attempt, 1),
	}
	notes := &notes{stopAt: c.StopAt}
	var result Result
	waits := &fake.Waits{Durable: isDurable(c.Tool), Ends: c.Waits}
	fake.During(fake.World{Config: c.Config, Store: c.Store, HTTP: c.HTTP, Waits: waits}, func() {
		text, failure := host.Run(notes, call)
		result.Text = text
		if failure != nil {
			result.Failed, result.Kind, result.Message = true, toolgate.Kind(failure.Kind), failure.Message
		}
	})
	result.Updates, result.Log = notes.updates, notes.lines
	seen, refused := waits.Seen()
	if result.Waits = seen; refused {
		result.Failed, result.Kind, result.Message, result.Text = true, toolgate.KindFailed, fake.NotDurable, ""
	}
	return result
}

// Decode decodes the result into a value.
func (r Result) Decode(t testing.TB, into any) {
	t.Helper()
	if r.Failed {
		t.Fatalf("%s: %s", r.Kind, r.Message)
	}
	if err := json.Unmarshal([]byte(r.Text), into); err != nil {
		t.Fatalf("the result %s: %v", r.Text, err)
	}
}

// WantResult fails the test unless the result equals want as JSON.
func (r Result) WantResult(t testing.TB, want any) {
	t.Helper()
	var got, expected any
	r.Decode(t, &got)
	text, err := json.Marshal(want)
	if err != nil {
		t.Fatalf("what is wanted has no JSON form: %v", err)
	}
	if err := json.Unmarshal(text, &expected); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got, expected) {
		t.Fatalf("the result is\n  %s\nand not\n  %s", r.Text, text)
	}
}

// WantFailure fails the test unless the call failed with this kind.
func (r Result) WantFailure(t testing.TB, kind toolgate.Kind) {
	t.Helper()
	if !r.Failed {
		t.Fatalf("the call succeeded with %s", r.Text)
	}
	if r.Kind != kind {
		t.Fatalf("the failure is %s, not %s: %s", r.Kind, kind, r.Message)
	}
}

// Check fails the test if it finds a mistake in the declarations. Only `toolgate check` finds all of them.
func Check(t testing.TB) {
	t.Helper()
	tools, findings := host.Declared()
	if len(tools) == 0 {
		t.Error("no tool is registered")
	}
	for _, finding := range findings {
		t.Error(finding)
	}
}

func or(text, otherwise string) string {
	if text == "" {
		return otherwise
	}
	return text
}

// notes is the host of a test. Tools can report from several goroutines.
type notes struct {
	mutex   sync.Mutex
	updates []Update
	lines   []Line
	asked   int
	stopAt  int
}

func (n *notes) Progress(message string, fraction *float64, data *string) {
	n.mutex.Lock()
	defer n.mutex.Unlock()
	update := Update{Message: message, Fraction: toolgate.Unknown}
	if fraction != nil {
		update.Fraction = *fraction
	}
	if data != nil {
		update.Data = *data
	}
	n.updates = append(n.updates, update)
}

func (n *notes) Log(level uint8, message string) {
	n.mutex.Lock()
	defer n.mutex.Unlock()
	n.lines = append(n.lines, Line{toolgate.Level(level), message})
}

func (n *notes) StopRequested() bool {
	n.mutex.Lock()
	defer n.mutex.Unlock()
	n.asked++
	return n.stopAt > 0 && n.asked >= n.stopAt
}
