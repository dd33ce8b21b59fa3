package toolgate

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"

	"toolgate/internal/host"
)

// Level says how much a log line matters.
type Level uint8

const (
	// Debug is for the author of the plugin.
	Debug Level = iota
	// Info is worth knowing, and nothing needs to be done.
	Info
	// Warn says that something is off and the call goes on.
	Warn
	// Error says that the call will not have its result.
	Error
)

// Unknown as the fraction of [Call.Progress] says that nobody knows how far the call has come.
const Unknown = -1.0

// Call is one call of a server tool, as its function sees it.
type Call struct {
	call host.Call
	host host.Host
}

// ID is the id that the caller gave the call, the same at every attempt.
func (c *Call) ID() string { return c.call.ID }

// Tool is the tool's name.
func (c *Call) Tool() string { return c.call.Tool }

// IdempotencyKey is stable over every attempt at this call and never used for another: hand it to whatever has effects.
func (c *Call) IdempotencyKey() string { return c.call.IdempotencyKey }

// Attempt is 1, then one more each time that the call is dispatched again after a crash.
func (c *Call) Attempt() uint32 { return c.call.Attempt }

// Scope says where a call belongs and who is behind it.
type Scope struct {
	// Conversation is the conversation that the call's turn belongs to.
	Conversation string `json:"conversation"`
	// Turn is the turn that asked for the call.
	Turn string `json:"turn"`
	// Caller is the principal that submitted the turn.
	Caller string `json:"caller"`
	// Approver is the principal that approved the call; empty where nobody had to.
	Approver string `json:"approver"`
	// Context is the JSON that the caller passed along with the turn; empty or null where it passed nothing.
	Context json.RawMessage `json:"context"`
}

// Scope says where the call belongs and who is behind it. Keys that this version of the SDK does not know are left out.
func (c *Call) Scope() Scope {
	var scope Scope
	// The host writes it. A form of it that cannot be read is one of a later interface, and then nothing is known.
	_ = json.Unmarshal([]byte(c.call.Scope), &scope)
	return scope
}

// Progress reports how far the call has come: one line for people, and a fraction from 0.0 to 1.0, or [Unknown].
func (c *Call) Progress(message string, fraction float64) {
	c.Report(message, fraction, nil)
}

// Report is like [Call.Progress] with a value for whoever renders the call, a partial result for instance. A value that has
// no JSON form is left out.
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

// StopRequested says whether the call should come to its end: nobody waits for its result any more, or its time is nearly
// up. A tool that works long asks between its steps, and ends with what it has or with an error.
func (c *Call) StopRequested() bool { return c.host.StopRequested() }

// Logger gives a structured logger that writes to the call's log.
func (c *Call) Logger() *slog.Logger { return slog.New(&logHandler{call: c}) }

// logHandler writes each record as one line: the message, and then its attributes as key=value.
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
