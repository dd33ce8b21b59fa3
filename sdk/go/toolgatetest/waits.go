//go:build !wasip1

package toolgatetest

import (
	"encoding/json"
	"testing"

	"toolgate/durable"
	"toolgate/internal/fake"
	"toolgate/internal/host"
)

// Wait is one wait of a durable tool: its Kind (ask, approve, await-external, call-tools or sleep), the Question as a JSON text, and
// the Time of a sleep.
type Wait = fake.Wait

// End is the end of a durable tool's wait for a person, an external system or other tools.
type End = fake.End

// Answered ends a wait of Ask or Choose with this answer.
func Answered(t testing.TB, answer any) End {
	t.Helper()
	return End{Kind: "ask", Answer: text(t, answer)}
}

// Approved ends a wait of Approve with an approval of the value as it is.
func Approved() End { return End{Kind: "approve"} }

// ApprovedAs ends a wait of Approve with an approval of this value.
func ApprovedAs(t testing.TB, value any) End {
	t.Helper()
	return End{Kind: "approve", Answer: text(t, value)}
}

// Received ends a wait of AwaitExternal with this result.
func Received(t testing.TB, result any) End {
	t.Helper()
	return End{Kind: "await-external", Answer: text(t, result)}
}

// Returned ends a wait of CallTools with these ends of its calls. The Err of an end is a [durable.NotCarriedOutError].
func Returned(t testing.TB, ends ...durable.Returned) End {
	t.Helper()
	given := make([]map[string]any, len(ends))
	for i, end := range ends {
		if end.Err != nil {
			given[i] = map[string]any{"ok": false, "error": end.Err}
		} else {
			given[i] = map[string]any{"ok": true, "result": end.Result, "trusted": !end.Untrusted}
		}
	}
	return End{Kind: "call-tools", Answer: text(t, given)}
}

// Denied ends a wait for a person with a denial and this comment.
func Denied(comment string) End { return End{Denied: true, Comment: comment} }

// Expired ends a wait for a person or an external system without an answer.
func Expired() End { return End{Expired: true} }

func text(t testing.TB, value any) string {
	t.Helper()
	text, err := json.Marshal(value)
	if err != nil {
		t.Fatalf("the answer has no JSON form: %v", err)
	}
	return string(text)
}

// isDurable reports whether this tool is declared with the option Durable.
func isDurable(name string) bool {
	tools, _ := host.Declared()
	for _, tool := range tools {
		var options struct{ Durable bool }
		if tool.Name == name && json.Unmarshal([]byte(tool.Options), &options) == nil {
			return options.Durable
		}
	}
	return false
}
