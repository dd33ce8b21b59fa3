//go:build !wasip1

package fake

import (
	"encoding/json"
	"fmt"
	"sync"
	"time"
)

// Waits has the ends of the waits of one call, and records what it waited for.
type Waits struct {
	// Durable is whether the tool may wait.
	Durable bool
	// Ends are the ends of the waits for people, external systems and other tools, in order.
	Ends []End

	mutex sync.Mutex
	seen  []Wait
	slept bool
}

// End is the end of one wait.
type End struct {
	// Kind is the kind of wait that it can end: ask, approve, await-external or call-tools. It is empty if it can end each.
	Kind string
	// Answer is a JSON text. An approval without one approves the subject as it is.
	Answer string
	// Denied, Expired and NotGranted are reasons for no answer.
	Denied, Expired bool
	NotGranted      string
	// Comment is that of a denial.
	Comment string
}

// Wait is one wait of a call.
type Wait struct {
	// Kind is ask, approve, await-external, call-tools or sleep.
	Kind string
	// Question is the JSON text of the question. It is empty for a sleep.
	Question string
	// Time is the time of a sleep.
	Time time.Duration
}

// NotDurable is the message for a tool that waits and may not.
const NotDurable = "only a durable tool can wait in the middle of a call: declare it with the option Durable()"

// Next ends the next wait that is not a sleep.
func (w *Waits) Next(kind, question string) End {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	w.seen = append(w.seen, Wait{Kind: kind, Question: question})
	if !w.Durable {
		return End{NotGranted: NotDurable}
	}
	if len(w.Ends) == 0 || w.Ends[0].Kind != "" && w.Ends[0].Kind != kind {
		return End{NotGranted: fmt.Sprintf("the test does not answer this question: %s", question)}
	}
	end := w.Ends[0]
	w.Ends = w.Ends[1:]
	if end.Kind == "approve" && end.Answer == "" {
		var asked struct{ Subject json.RawMessage }
		_ = json.Unmarshal([]byte(question), &asked)
		end.Answer = string(asked.Subject)
	}
	return end
}

// Sleep ends at once.
func (w *Waits) Sleep(duration time.Duration) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	w.seen = append(w.seen, Wait{Kind: "sleep", Time: duration})
	w.slept = true
}

// Seen returns the waits, in order, and whether the call slept without being allowed to.
func (w *Waits) Seen() (waits []Wait, refused bool) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	return w.seen, w.slept && !w.Durable
}
