package toolgate

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"

	"toolgate/internal/host"
)

// Level is the severity of a log line.
type Level uint8

const (
	// Debug is for the author of the plugin.
	Debug Level = iota
	// Info needs no action.
	Info
	// Warn reports a problem that does not end the call.
	Warn
	// Error reports that the call will have no result.
	Error
)

// Unknown is the fraction for [Call.Progress] when the progress is unknown.
const Unknown = -1.0

// Call is one call of a server tool.
type Call struct {
	call host.Call
	host host.Host
}

// ID is the id from the caller, the same at every attempt.
func (c *Call) ID() string { return c.call.ID }

// Tool is the tool's name.
func (c *Call) Tool() string { return c.call.Tool }

// IdempotencyKey is the same at every attempt at this call, and no other call has it. Pass it to services with side effects.
func (c *Call) IdempotencyKey() string { return c.call.IdempotencyKey }

// Attempt is 1 at first. It grows by one each time that a host runs the call again after a crash.
func (c *Call) Attempt() uint32 { return c.call.Attempt }

// Scope is the conversation, the turn and the people of a call.
type Scope struct {
	// Conversation is the id of the turn's conversation.
	Conversation string `json:"conversation"`
	// Turn is the id of the turn.
	Turn string `json:"turn"`
	// Caller is the principal that submitted the turn.
	Caller string `json:"caller"`
	// Approver is the principal that approved the call. It is empty for a tool without a gate.
	Approver string `json:"approver"`
	// Context is the JSON that the caller sent with the turn. It is empty or null if there was none.
	Context json.RawMessage `json:"context"`
}

// Scope returns the scope of the call. It leaves out keys that this version of the SDK does not know.
func (c *Call) Scope() Scope {
	var scope Scope
	// The host writes it. A form that cannot be decoded comes from a later interface, and leaves the scope empty.
	_ = json.Unmarshal([]byte(c.call.Scope), &scope)
	return scope
}

// Progress reports progress: one line for people, and a fraction from 0.0 to 1.0, or [Unknown].
func (c *Call) Progress(message string, fraction float64) {
	c.Report(message, fraction, nil)
}

// Report is [Call.Progress] with a value for the user interface, such as a partial result. It leaves out a value that has no JSON
// form.
func (c *Call) Report(message string, fraction float64, data any) {
	var known *float64
	if fraction >= 0 && fraction <= 1 {
		known = &fraction
	}
	var text *string
	if data != nil {
		if encoded, err := encode(data); err == nil {
			encoded := valid(string(encoded))
			text = &encoded
		}
	}
	c.host.Progress(valid(message), known, text)
}

// Log writes a line to the call's log.
func (c *Call) Log(level Level, message string) {
	c.host.Log(uint8(level), valid(message))
}

// Logf is [Call.Log] with a format.
func (c *Call) Logf(level Level, format string, args ...any) {
	c.Log(level, fmt.Sprintf(format, args...))
}

// StopRequested reports whether the call should end, because it was cancelled or its time is nearly up. A tool that runs for long
// checks this between its steps. It then returns what it has, or an error.
func (c *Call) StopRequested() bool { return c.host.StopRequested() }

// Logger returns a structured logger that writes to the call's log.
func (c *Call) Logger() *slog.Logger { return slog.New(&logHandler{call: c}) }

// logHandler writes each record as one line: the message, then its attributes as key=value.
type logHandler struct {
	call   *Call
	attrs  []slog.Attr
	groups string
}

func (h *logHandler) Enabled(context.Context, slog.Level) bool { return true }

func (h *logHandler) Handle(_ context.Context, record slog.Record) error {
	line := &strings.Builder{}
	line.WriteString(record.Message)
	for _, attr := range h.attrs {
		fmt.Fprintf(line, " %s=%v", attr.Key, attr.Value.Resolve())
	}
	record.Attrs(func(attr slog.Attr) bool {
		fmt.Fprintf(line, " %s%s=%v", h.groups, attr.Key, attr.Value.Resolve())
		return true
	})
	level := Debug
	switch {
	case record.Level >= slog.LevelError:
		level = Error
	case record.Level >= slog.LevelWarn:
		level = Warn
	case record.Level >= slog.LevelInfo:
		level = Info
	}
	h.call.Log(level, line.String())
	return nil
}

func (h *logHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	with := &logHandler{call: h.call, groups: h.groups, attrs: append([]slog.Attr(nil), h.attrs...)}
	for _, attr := range attrs {
		attr.Key = h.groups + attr.Key
		with.attrs = append(with.attrs, attr)
	}
	return with
}

func (h *logHandler) WithGroup(name string) slog.Handler {
	if name == "" {
		return h
	}
	return &logHandler{call: h.call, attrs: h.attrs, groups: h.groups + name + "."}
}
