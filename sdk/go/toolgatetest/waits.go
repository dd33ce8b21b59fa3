//go:build !wasip1

package toolgatetest

import (
	"encoding/json"
	"testing"

	"toolgate/internal/fake"
	"toolgate/internal/host"
)

// Wait is one wait of a durable tool: its Kind (ask, approve, await-external or sleep), the Question as a JSON text, and the Time of a sleep.
type Wait = fake.Wait

// End is the end of a durable tool's wait for a person or an external system.
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
