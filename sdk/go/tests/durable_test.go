package tests

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"toolgate"
	"toolgate/durable"
	"toolgate/toolgatetest"
)

type target struct {
	Environment string `json:"environment" description:"The environment to deploy to."`
}

func (t target) Validate() error {
	if t.Environment == "nowhere" {
		return errors.New("there is no such environment")
	}
	return nil
}

type plan struct {
	Environment string `json:"environment"`
	Instances   int    `json:"instances"`
}

func deploy(*toolgate.Call, toolgate.NoArguments) ([]any, error) {
	target, err := durable.Ask[target](durable.Question{Prompt: "Where to?", Expires: time.Minute, Who: []string{"group:ops"}})
	if err != nil {
		return nil, err
	}
	question := durable.Question{Prompt: "Deploy <it>?", Risk: toolgate.High, Editable: []string{"instances"}, Quorum: 2}
	plan, err := durable.Approve(question, plan{target.Environment, 3})
	if errors.Is(err, durable.ErrExpired) {
		return []any{"nobody was there"}, nil
	}
	if err != nil {
		return nil, err
	}
	durable.Sleep(5 * time.Second)
	choice, err := durable.Choose(durable.Question{Prompt: "Healthy?"}, "yes", "no")
	return []any{plan, choice}, err
}

func doze(*toolgate.Call, toolgate.NoArguments) (bool, error) {
	durable.Sleep(time.Second)
	return true, nil
}

type health struct {
	Healthy bool `json:"healthy"`
}

func watch(*toolgate.Call, toolgate.NoArguments) ([]any, error) {
	about := map[string]int{"job": 7}
	report, err := durable.AwaitExternal[health](durable.External{
		Prompt: "The health", Expires: time.Minute, Signal: "health", Metadata: about,
	})
	if err != nil {
		return nil, err
	}
	anything, err := durable.AwaitExternal[any](durable.External{Prompt: "Anything"})
	return []any{report.Healthy, anything}, err
}

func post(*toolgate.Call, toolgate.NoArguments) ([]any, error) {
	ends, err := durable.CallTools(
		durable.ToolCall{Tool: "ledger_post", Arguments: plan{"live", 3}},
		durable.ToolCall{Tool: "ledger_read", Arguments: map[string]any{}},
	)
	var got []any
	for _, end := range ends {
		var refused *durable.NotCarriedOutError
		if errors.As(end.Err, &refused) {
			got = append(got, refused.Code, refused.Error())
		} else {
			got = append(got, end.Result, end.Untrusted)
		}
	}
	return got, err
}

func init() {
	toolgate.Register(
		toolgate.Server("post", "Posts with other tools.", post, toolgate.Durable()),
		toolgate.Server("deploy", "Deploys.", deploy, toolgate.Durable(), toolgate.Expires(time.Hour), toolgate.ContextKeys()),
		toolgate.Server("watch", "Waits for reports.", watch, toolgate.Durable()),
		toolgate.Server("hasty", "Deploys, which it may not.", deploy),
		toolgate.Server("doze", "Sleeps, which it may not.", doze),
	)
}

func wait(t *testing.T, ends ...toolgatetest.End) toolgatetest.Result {
	t.Helper()
	return toolgatetest.Call{Tool: "deploy", Waits: ends}.Run(t)
}

func live(t *testing.T) toolgatetest.End {
	t.Helper()
	return toolgatetest.Answered(t, map[string]string{"environment": "live"})
}

func TestAnswersReachTheToolInOrder(t *testing.T) {
	run := wait(t, live(t), toolgatetest.Approved(), toolgatetest.Answered(t, map[string]any{"decision": "yes", "data": 7}))
	plan := map[string]any{"environment": "live", "instances": 3}
	run.WantResult(t, []any{plan, map[string]any{"decision": "yes", "data": 7}})
	schema := `{"additionalProperties":false,"properties":{"environment":{"description":"The environment to deploy to.","type":"string"}},` +
		`"required":["environment"],"type":"object"}`
	want := []toolgatetest.Wait{
		{Kind: "ask", Question: `{"expires_ms":60000,"prompt":"Where to?","response":` + schema + `,"who":["group:ops"]}`},
		{Kind: "approve", Question: `{"editable":["instances"],"prompt":"Deploy <it>?","quorum":2,"risk":"high",` +
			`"subject":{"environment":"live","instances":3}}`},
		{Kind: "sleep", Time: 5 * time.Second},
		{Kind: "ask", Question: `{"prompt":"Healthy?","responses":["yes","no"]}`},
	}
	if fmt.Sprint(run.Waits) != fmt.Sprint(want) {
		t.Errorf("waits:\n%v\nand not\n%v", run.Waits, want)
	}
}

func TestDenialExpiryAndEditDiffer(t *testing.T) {
	for _, row := range []struct {
		ends    []toolgatetest.End
		message string
	}{
		{[]toolgatetest.End{live(t), toolgatetest.Denied("not today")}, "a person denied it: not today"},
		{[]toolgatetest.End{toolgatetest.Denied("")}, "a person denied it"},
		{[]toolgatetest.End{toolgatetest.Expired()}, "nobody answered in time"},
		{[]toolgatetest.End{toolgatetest.Answered(t, map[string]int{"environment": 1})},
			"the answer cannot be read: /environment: number does not fit string"},
		{[]toolgatetest.End{toolgatetest.Answered(t, target{"nowhere"})}, "the answer cannot be read: there is no such environment"},
	} {
		run := wait(t, row.ends...)
		run.WantFailure(t, toolgate.KindFailed)
		if run.Message != row.message {
			t.Errorf("%q and not %q", run.Message, row.message)
		}
	}
	wait(t, live(t), toolgatetest.Expired()).WantResult(t, []any{"nobody was there"})
	edited := plan{"live", 1}
	no := toolgatetest.Answered(t, map[string]any{"decision": "no"})
	wait(t, live(t), toolgatetest.ApprovedAs(t, edited), no).WantResult(t, []any{edited, map[string]any{"decision": "no"}})
}

func TestErrorsOfWaitsDiffer(t *testing.T) {
	var got []string
	ask := func(*toolgate.Call, toolgate.NoArguments) (any, error) {
		_, err := durable.Ask[json.RawMessage](durable.Question{Prompt: "?"})
		var denied *durable.DeniedError
		got = append(got, fmt.Sprint(errors.As(err, &denied), errors.Is(err, durable.ErrExpired), errors.Is(err, durable.ErrNotGranted)))
		return nil, err
	}
	toolgate.Register(toolgate.Server("ask_once", "Asks.", ask, toolgate.Durable()))
	for _, ends := range [][]toolgatetest.End{{toolgatetest.Denied("no")}, {toolgatetest.Expired()}, nil} {
		toolgatetest.Call{Tool: "ask_once", Waits: ends}.Run(t)
	}
	if want := []string{"true false false", "false true false", "false false true"}; fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%v", got)
	}
}

func TestAnExternalResultReachesTheTool(t *testing.T) {
	ends := []toolgatetest.End{toolgatetest.Received(t, health{true}), toolgatetest.Received(t, []int{1})}
	run := toolgatetest.Call{Tool: "watch", Waits: ends}.Run(t)
	run.WantResult(t, []any{true, []int{1}})
	schema := `{"additionalProperties":false,"properties":{"healthy":{"type":"boolean"}},"required":["healthy"],"type":"object"}`
	want := []toolgatetest.Wait{
		{Kind: "await-external", Question: `{"expires_ms":60000,"metadata":{"job":7},"name":"health","prompt":"The health",` +
			`"schema":` + schema + `}`},
		{Kind: "await-external", Question: `{"prompt":"Anything"}`},
	}
	if fmt.Sprint(run.Waits) != fmt.Sprint(want) {
		t.Errorf("waits:\n%v\nand not\n%v", run.Waits, want)
	}
}

func TestAnExternalWaitWithoutAResultFails(t *testing.T) {
	for _, row := range []struct {
		tool    string
		end     toolgatetest.End
		message string
	}{
		{"watch", toolgatetest.Expired(), "nobody answered in time"},
		{"watch", toolgatetest.Received(t, map[string]int{"healthy": 1}), "the answer cannot be read: /healthy: "},
		{"watch", toolgatetest.Answered(t, health{true}), "the test does not answer this question: "},
		{"watch", toolgatetest.Approved(), "the test does not answer this question: "},
		{"deploy", toolgatetest.Received(t, target{"live"}), "the test does not answer this question: "},
	} {
		run := toolgatetest.Call{Tool: row.tool, Waits: []toolgatetest.End{row.end}}.Run(t)
		run.WantFailure(t, toolgate.KindFailed)
		if !strings.HasPrefix(run.Message, row.message) {
			t.Errorf("%q and not %q", run.Message, row.message)
		}
	}
}

func TestResultsOfOtherToolsReachTheTool(t *testing.T) {
	denied := durable.Returned{Err: &durable.NotCarriedOutError{Code: "denied", Message: "a person denied it"}}
	untrusted := durable.Returned{Result: json.RawMessage(`7`), Untrusted: true}
	for _, row := range []struct {
		end, other durable.Returned
		want       []any
	}{
		{durable.Returned{Result: json.RawMessage(`{"n":1}`)}, denied, []any{map[string]int{"n": 1}, false, "denied", "a person denied it"}},
		{untrusted, untrusted, []any{7, true, 7, true}},
	} {
		ends := []toolgatetest.End{toolgatetest.Returned(t, row.end, row.other)}
		run := toolgatetest.Call{Tool: "post", Waits: ends}.Run(t)
		run.WantResult(t, row.want)
		request := `{"calls":[{"tool":"ledger_post","arguments":{"environment":"live","instances":3}},{"tool":"ledger_read","arguments":{}}]}`
		if want := []toolgatetest.Wait{{Kind: "call-tools", Question: request}}; fmt.Sprint(run.Waits) != fmt.Sprint(want) {
			t.Errorf("waits:\n%v\nand not\n%v", run.Waits, want)
		}
	}
}

func TestACallOfOtherToolsWithoutAScriptFails(t *testing.T) {
	for _, ends := range [][]toolgatetest.End{nil, {toolgatetest.Approved()}, {live(t)}} {
		run := toolgatetest.Call{Tool: "post", Waits: ends}.Run(t)
		run.WantFailure(t, toolgate.KindFailed)
		if !strings.HasPrefix(run.Message, "the test does not answer this question: ") {
			t.Errorf("%q", run.Message)
		}
	}
	wait(t, toolgatetest.Returned(t)).WantFailure(t, toolgate.KindFailed) // results of tools are no answer
}

func TestAWaitWithoutAScriptFailsTheCall(t *testing.T) {
	run := wait(t, live(t))
	if !run.Failed || !strings.HasPrefix(run.Message, `the test does not answer this question: {"editable"`) {
		t.Errorf("%q", run.Message)
	}
	wait(t, live(t), live(t)).WantFailure(t, toolgate.KindFailed) // an answer is no approval
}

func TestAToolThatIsNotDurableCannotWait(t *testing.T) {
	for _, tool := range []string{"hasty", "doze"} {
		run := toolgatetest.Call{Tool: tool, Waits: []toolgatetest.End{live(t)}}.Run(t)
		run.WantFailure(t, toolgate.KindFailed)
		if !strings.Contains(run.Message, "declare it with the option Durable()") {
			t.Errorf("%q", run.Message)
		}
	}
}
