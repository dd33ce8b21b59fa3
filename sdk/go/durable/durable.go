// Package durable waits in the middle of a call: for an answer, for a decision about a value, for an external system, for other
// tools, or for time.
//
// Only a tool with the option [toolgate.Durable] may wait. While its call waits, it has no instance, and the host may be stopped.
// Then the host runs the function again from its beginning, and answers each wait that has ended with the same answer. So the
// function must do the same each time. Clocks and random numbers do, and a function that keeps its data in its arguments and local
// variables does too. Ask from one goroutine.
//
//	func deploy(call *toolgate.Call, _ toolgate.NoArguments) (string, error) {
//		target, err := durable.Ask[Target](durable.Question{Prompt: "Where to?", Expires: 24 * time.Hour})
//		if err != nil {
//			return "", err
//		}
//		plan := Plan{Environment: target.Environment, Instances: 3}
//		plan, err = durable.Approve(durable.Question{Prompt: "Deploy this?", Editable: []string{"instances"}}, plan)
//		if errors.Is(err, durable.ErrExpired) {
//			return "nobody was there", nil
//		}
//		durable.Sleep(10 * time.Minute)
//		return plan.Environment, err
//	}
package durable

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"time"

	"toolgate"
	"toolgate/internal/host"
)

var (
	// ErrExpired means that nobody answered in time.
	ErrExpired = errors.New("nobody answered in time")
	// ErrCancelled means that the call is being cancelled.
	ErrCancelled = errors.New("the call is being cancelled")
	// ErrNotGranted means that the call may not wait. The message of the whole error is for the author of the plugin.
	ErrNotGranted = errors.New("the call may not wait")
	// ErrMalformed means that the answer is not a value of the type.
	ErrMalformed = errors.New("the answer cannot be read")
)

// DeniedError means that somebody denied it. Find it with [errors.As].
type DeniedError struct {
	// Comment is the comment of that person. It is empty if there was none.
	Comment string
}

// Error returns the message.
func (e *DeniedError) Error() string {
	if e.Comment == "" {
		return "a person denied it"
	}
	return "a person denied it: " + e.Comment
}

// Question is a question to a person. Only Prompt is required.
type Question struct {
	// Prompt is the text, of 1 to 4096 bytes.
	Prompt string
	// Expires limits the wait, in whole milliseconds, at most to the option of the tool. 0 means that option.
	Expires time.Duration
	// Risk is the possible harm of a wrong answer. Without it, that of the tool.
	Risk toolgate.RiskLevel
	// Who are the people who may answer: principal:NAME, group:NAME or role:NAME. Without names, any approver.
	Who []string
	// Editable is for Approve: the members of the value that an approver may change.
	Editable []string
	// EditableAll is for Approve: an approver may change the whole value.
	EditableAll bool
	// Quorum is for Approve: how many people must approve. 0 means one.
	Quorum int
}

// External is a wait for an external system, for example for the end of a job. Only Prompt is required.
type External struct {
	// Prompt says to people what is awaited, in 1 to 4096 bytes.
	Prompt string
	// Expires limits the wait, in whole milliseconds, at most to the option of the tool. 0 means that option.
	Expires time.Duration
	// Signal is the name of the signal that brings the result: 1 to 64 of the characters a-z A-Z 0-9 _ . -. If another call of the
	// conversation waits for this name, the call fails. Without it, no signal brings the result.
	Signal string
	// Metadata is a value for the external system, of at most 4 KiB as JSON.
	Metadata any
}

// Choice is the answer to a question with choices.
type Choice struct {
	// Decision is one of the choices.
	Decision string `json:"decision"`
	// Data is anything that the person added, as JSON. It is empty if there was nothing.
	Data json.RawMessage `json:"data,omitempty"`
}

// ToolCall is a call of another tool. All calls of one call together have a limit, 100 unless the operator sets another.
type ToolCall struct {
	// Tool is the name of the tool.
	Tool string `json:"tool"`
	// Arguments have an object as their JSON form, for example a struct or a map.
	Arguments any `json:"arguments"`
}

// Returned is the end of a call of another tool.
type Returned struct {
	// Result is the result as JSON. It is empty if Err is not nil.
	Result json.RawMessage
	// Untrusted is whether the host does not control the result, as that of a client, a provider or an external system.
	Untrusted bool
	// Err is why there is no result: a [NotCarriedOutError].
	Err error
}

// NotCarriedOutError means that a call of another tool has no result. Find it with [errors.As].
type NotCarriedOutError struct {
	// Code is how the call ended, such as denied or expired, or the code of a failure, such as invalid_arguments.
	Code string `json:"code"`
	// Message is a sentence for a model.
	Message string `json:"message"`
}

// Error returns the message.
func (e *NotCarriedOutError) Error() string { return e.Message }

// Ask asks a person for a value of this type, and returns it. The person sees the schema of the type as a form.
//
// It fails with [DeniedError], [ErrExpired], [ErrCancelled], [ErrNotGranted] or [ErrMalformed].
func Ask[Answer any](question Question) (answer Answer, err error) {
	members := question.members()
	if err := describe[Answer](members, "response"); err != nil {
		return answer, err
	}
	return waitFor[Answer](ask, members)
}

// Choose asks a person to choose. There are 1 to 16 distinct choices of 1 to 64 characters.
//
// It fails as [Ask].
func Choose(question Question, choices ...string) (Choice, error) {
	members := question.members()
	members["responses"] = choices
	return waitFor[Choice](ask, members)
}

// Approve asks for a decision about a value, and returns the value as it was approved. The host cannot know whether later effects
// match it. To bind an approval to an effect, put the effect into a tool with [toolgate.RequiresApproval].
//
// It fails as [Ask], and with [toolgate.KindFailed] if the value has no JSON form.
func Approve[Subject any](question Question, subject Subject) (approved Subject, err error) {
	members := question.members()
	members["subject"] = subject
	if question.EditableAll {
		members["editable"] = "all"
	} else if len(question.Editable) > 0 {
		members["editable"] = question.Editable
	}
	if question.Quorum != 0 {
		members["quorum"] = question.Quorum
	}
	return waitFor[Subject](approve, members)
}

// AwaitExternal waits for an external system, and returns the result that it sends. The sender is the caller, an admin, or the
// holder of a link to the wait. So the result is untrusted. The host has only checked that it fits the schema of the type.
//
// It fails as [Ask], and with [toolgate.KindFailed] if Metadata has no JSON form.
func AwaitExternal[Received any](external External) (received Received, err error) {
	members := withExpiry(external.Prompt, external.Expires)
	if external.Signal != "" {
		members["name"] = external.Signal
	}
	if external.Metadata != nil {
		members["metadata"] = external.Metadata
	}
	if err := describe[Received](members, "schema"); err != nil {
		return received, err
	}
	return waitFor[Received](awaitExternal, members)
}

// CallTools calls other tools, and returns their results in the order of the calls, when all of them have ended. The calls are a
// turn of their own, with the approvals, policies and people of any turn: each may take days, or be denied. A call without a result
// is no error of this function. The plugin's manifest requests the tools under calls, and the operator grants them.
//
// It fails as [Ask] if no tool was called, and with [toolgate.KindFailed] if arguments have no JSON form.
func CallTools(calls ...ToolCall) ([]Returned, error) {
	text, err := waitText(callTools, map[string]any{"calls": calls})
	if err != nil {
		return nil, err
	}
	var ends []struct {
		Result  json.RawMessage     `json:"result"`
		Trusted *bool               `json:"trusted"`
		Error   *NotCarriedOutError `json:"error"`
	}
	if err := json.Unmarshal([]byte(text), &ends); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	returned := make([]Returned, len(ends))
	for i, end := range ends {
		returned[i] = Returned{Result: end.Result, Untrusted: end.Trusted != nil && !*end.Trusted}
		if end.Error != nil {
			returned[i].Err = end.Error
		}
	}
	return returned, nil
}

// Sleep waits for this time, in whole milliseconds. In a component [time.Sleep] does the same. In a native test, only this one
// ends at once.
func Sleep(duration time.Duration) {
	sleep(max(duration, 0))
}

func (q Question) members() map[string]any {
	members := withExpiry(q.Prompt, q.Expires)
	if q.Risk != "" {
		members["risk"] = q.Risk
	}
	if len(q.Who) > 0 {
		members["who"] = q.Who
	}
	return members
}

// withExpiry returns the members that every wait has.
func withExpiry(prompt string, expires time.Duration) map[string]any {
	members := map[string]any{"prompt": prompt}
	if expires != 0 {
		members["expires_ms"] = expires.Milliseconds()
	}
	return members
}

// describe adds the schema of an answer's type, unless every JSON fits.
func describe[Answer any](members map[string]any, key string) error {
	schema, err := host.Schema(reflect.TypeFor[Answer]())
	if err != nil {
		return toolgate.Failed("no answer can have this type: %w", err)
	}
	if len(schema) > 0 {
		members[key] = schema
	}
	return nil
}

// waitFor asks the host, and decodes the answer.
func waitFor[Answer any](wait func(question string) (string, error), members map[string]any) (answer Answer, err error) {
	text, err := waitText(wait, members)
	if err != nil {
		return answer, err
	}
	if err := host.Decode(text, reflect.ValueOf(&answer).Elem()); err != nil {
		return answer, fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	return answer, nil
}

// waitText asks the host, and returns the text of the answer.
func waitText(wait func(question string) (string, error), members map[string]any) (string, error) {
	question, err := host.Encode(members)
	if err != nil {
		return "", toolgate.Failed("the question has no JSON form: %w", err)
	}
	return wait(question)
}

// notGranted is an [ErrNotGranted] with its own message.
type notGranted string

func (e notGranted) Error() string   { return string(e) }
func (notGranted) Is(err error) bool { return err == ErrNotGranted }
