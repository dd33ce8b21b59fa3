package tests

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"toolgate"
	"toolgate/toolgatetest"
)

type order struct {
	Item     string   `json:"item" description:"What to order." enum:"tea,coffee"`
	Quantity int32    `json:"quantity" minimum:"1" maximum:"10"`
	Notes    []string `json:"notes,omitempty" maxLength:"20" maxItems:"3"`
}

func (o order) Validate() error {
	if o.Item == "tea" && o.Quantity > 5 {
		return errors.New("there are only five cups for tea")
	}
	return nil
}

func place(call *toolgate.Call, args order) (map[string]any, error) {
	switch args.Item {
	case "panic":
		panic("out of cups")
	case "gone":
		return nil, fmt.Errorf("while ordering: %w", toolgate.Unavailable("the kitchen is closed"))
	case "html":
		call.Report("writing", 0, "<&>")
		return map[string]any{"page": "<b>&</b>"}, nil
	case "plain":
		return nil, errors.New("it broke \xff")
	case "unwritable":
		return map[string]any{"f": func() {}}, nil
	}
	for step := range 3 {
		if call.StopRequested() {
			return nil, toolgate.Failed("stopped at step %d", step)
		}
		call.Report("brewing", float64(step)/4, map[string]int{"step": step})
	}
	call.Progress("done \xff", toolgate.Unknown)
	call.Logf(toolgate.Warn, "%d ordered", args.Quantity)
	call.Logger().With("a", 1).WithGroup("g").Error("slogged", slog.Int("b", 2))
	scope := call.Scope()
	return map[string]any{
		"key": call.IdempotencyKey(), "attempt": call.Attempt(), "caller": scope.Caller, "context": scope.Context,
	}, nil
}

func init() {
	toolgate.Register(
		toolgate.Server("order", "Orders.", place, toolgate.RequiresApproval(), toolgate.Editable("quantity"),
			toolgate.Prompt("{quantity} of {item} {{now}}"), toolgate.Streaming(), toolgate.Timeout(time.Second)),
		toolgate.Human[toolgate.NoArguments, bool]("sure", "Asks.", toolgate.AnswerOnExpiry(false), toolgate.Responses("yes", "no")),
		toolgate.Client[toolgate.NoArguments, string]("where", "Locates.", toolgate.Expires(time.Minute), toolgate.ContextKeys()),
		toolgate.Provider[toolgate.NoArguments]("search", "Searches.", toolgate.KeepLatest(2), toolgate.OpenWorld(true)),
	)
}

func TestDeclarationsAreLegal(t *testing.T) { toolgatetest.Check(t) }

func TestACallReadsItsScopeAndReportsProgress(t *testing.T) {
	run := toolgatetest.Call{
		Tool: "order", Arguments: map[string]any{"item": "coffee", "quantity": 2}, IdempotencyKey: "k", Attempt: 3,
		Scope: toolgate.Scope{Caller: "ada", Context: json.RawMessage(`{"x":1}`)},
	}.Run(t)
	run.WantResult(t, map[string]any{"key": "k", "attempt": 3, "caller": "ada", "context": map[string]int{"x": 1}})
	want := []toolgatetest.Update{
		{Message: "brewing", Fraction: 0, Data: `{"step":0}`},
		{Message: "brewing", Fraction: 0.25, Data: `{"step":1}`},
		{Message: "brewing", Fraction: 0.5, Data: `{"step":2}`},
		{Message: "done \uFFFD", Fraction: toolgate.Unknown},
	}
	if fmt.Sprint(run.Updates) != fmt.Sprint(want) {
		t.Errorf("updates: %v", run.Updates)
	}
	lines := []toolgatetest.Line{
		{Level: toolgate.Warn, Message: "2 ordered"}, {Level: toolgate.Error, Message: "slogged a=1 g.b=2"},
	}
	if fmt.Sprint(run.Log) != fmt.Sprint(lines) {
		t.Errorf("log: %v", run.Log)
	}
}

func TestFailuresSayWhoseFaultItIs(t *testing.T) {
	for _, row := range []struct {
		arguments string
		kind      toolgate.Kind
		message   string
	}{
		{`{"item":"tea","quantity":6}`, toolgate.KindInvalidArguments, "there are only five cups for tea"},
		{`{"item":"tea","quantity":"x"}`, toolgate.KindInvalidArguments, "/quantity: string does not fit int32"},
		{`{"item":"tea","quantity":3000000000}`, toolgate.KindInvalidArguments, "/quantity: number 3000000000 does not fit int32"},
		{`{"item":"tea","quantity":1,"Quantity":9}`, toolgate.KindInvalidArguments, "/Quantity: there is no such argument; did you mean `quantity`?"},
		{`{"item":"gone","quantity":1}`, toolgate.KindUnavailable, "while ordering: the kitchen is closed"},
		{`{"item":"plain","quantity":1}`, toolgate.KindFailed, "it broke \uFFFD"},
		{`{"item":"panic","quantity":1}`, toolgate.KindFailed, "the tool panicked: out of cups"},
		{`{"item":"unwritable","quantity":1}`, toolgate.KindFailed, "the result has no JSON form: json: unsupported type: func()"},
	} {
		run := toolgatetest.Run(t, "order", json.RawMessage(row.arguments))
		run.WantFailure(t, row.kind)
		if run.Message != row.message {
			t.Errorf("%s: %q", row.arguments, run.Message)
		}
	}
	toolgatetest.Run(t, "sure", nil).WantFailure(t, toolgate.KindInvalidArguments)
	toolgatetest.Run(t, "nothing", nil).WantFailure(t, toolgate.KindInvalidArguments)
}

func TestWhatIsWrittenIsNotEscapedForHTML(t *testing.T) {
	run := toolgatetest.Run(t, "order", map[string]any{"item": "html", "quantity": 1})
	if want := "{\"page\":\"<b>&</b>\"}"; run.Text != want || len(run.Updates) != 1 || run.Updates[0].Data != `"<&>"` {
		t.Errorf("%s after %v", run.Text, run.Updates)
	}
}

func TestAPanicLeavesItsStackInTheLog(t *testing.T) {
	run := toolgatetest.Run(t, "order", map[string]any{"item": "panic", "quantity": 1})
	if len(run.Log) != 1 || run.Log[0].Level != toolgate.Error || !strings.Contains(run.Log[0].Message, "tests.place") {
		t.Errorf("log: %v", run.Log)
	}
}

func TestAToolThatAsksIsStopped(t *testing.T) {
	run := toolgatetest.Call{Tool: "order", Arguments: map[string]any{"item": "tea", "quantity": 1}, StopAt: 2}.Run(t)
	run.WantFailure(t, toolgate.KindFailed)
	if run.Message != "stopped at step 1" || len(run.Updates) != 1 {
		t.Errorf("%q after %v", run.Message, run.Updates)
	}
}
