package toolgate

import "time"

// ServerOption is what can be said about a server tool. What means nothing for a kind of tool does not compile with it.
type ServerOption interface{ forServer(*Tool) }

// ClientOption is what can be said about a client tool.
type ClientOption interface{ forClient(*Tool) }

// HumanOption is what can be said about a question to a person.
type HumanOption interface{ forHuman(*Tool) }

// ProviderOption is what can be said about a tool of the model's provider.
type ProviderOption interface{ forProvider(*Tool) }

// Option is for tools of every kind.
type Option func(*Tool)

func (o Option) forServer(t *Tool)   { o(t) }
func (o Option) forClient(t *Tool)   { o(t) }
func (o Option) forHuman(t *Tool)    { o(t) }
func (o Option) forProvider(t *Tool) { o(t) }

// WaitOption is for tools that may wait: gated ones, questions, and those that a client carries out.
type WaitOption func(*Tool)

func (o WaitOption) forServer(t *Tool) { o(t) }
func (o WaitOption) forClient(t *Tool) { o(t) }
func (o WaitOption) forHuman(t *Tool)  { o(t) }

// GateOption is for tools that can be gated: those of the server and of the client.
type GateOption func(*Tool)

func (o GateOption) forServer(t *Tool) { o(t) }
func (o GateOption) forClient(t *Tool) { o(t) }

// RunOption is for server tools alone.
type RunOption func(*Tool)

func (o RunOption) forServer(t *Tool) { o(t) }

// AnswerOption is for questions to a person alone.
type AnswerOption func(*Tool)

func (o AnswerOption) forHuman(t *Tool) { o(t) }

// Title is a name for people, where the tool's name is not good enough.
func Title(title string) Option { return set("title", title) }

// Risk says how bad it would be if a call went wrong. Shown to whoever is asked, unless the operator says otherwise.
func Risk(risk RiskLevel) Option { return set("risk", string(risk)) }

// RiskLevel is how bad it would be if a call went wrong.
type RiskLevel string

const (
	// Low is easily undone.
	Low RiskLevel = "low"
	// Medium is undone with some effort.
	Medium RiskLevel = "medium"
	// High is hard to undo.
	High RiskLevel = "high"
	// Critical cannot be undone, or reaches far.
	Critical RiskLevel = "critical"
)

// ReadOnly is a hint: the tool changes nothing.
func ReadOnly() Option { return hint("read_only", true) }

// Destructive is a hint: what the tool changes may be lost.
func Destructive() Option { return hint("destructive", true) }

// Idempotent is a hint: a second call with the same arguments changes nothing more.
func Idempotent() Option { return hint("idempotent", true) }

// OpenWorld is a hint: whether the tool deals with a world that nobody can list, like the web.
func OpenWorld(open bool) Option { return hint("open_world", open) }

// KeepForTurns says that a result is worth keeping in a model's context for this many turns.
func KeepForTurns(turns uint32) Option { return retain("max_age_turns", turns) }

// KeepLatest says that only this many of the tool's latest results are worth keeping in a model's context.
func KeepLatest(count uint32) Option { return retain("max_count", count) }

// NeverEvict says that results are never dropped from a model's context.
func NeverEvict() Option { return retain("never_evict", true) }

// RequiresApproval asks a person before each call is carried out.
func RequiresApproval() GateOption { return func(t *Tool) { t.gated = true } }

// Streaming says that the tool reports progress before its one result.
func Streaming() GateOption { return func(t *Tool) { t.streaming = true } }

// OnExpiry says what ends the wait for an approval that nobody gives.
func OnExpiry(outcome Expiry) GateOption {
	return func(t *Tool) { t.options["on_expiry"] = string(outcome) }
}

// Expiry is what ends the wait for an approval.
type Expiry string

const (
	// ExpiryError ends the call `expired`. What happens where nothing is declared.
	ExpiryError Expiry = "error"
	// ExpiryDeny ends the call `denied`.
	ExpiryDeny Expiry = "deny"
	// ExpiryApprove lets the call go on, where the operator allows that for the tool.
	ExpiryApprove Expiry = "approve"
)

// Editable names the top-level arguments that an approver may change; without names, all of them.
func Editable(names ...string) GateOption {
	return func(t *Tool) {
		if len(names) == 0 {
			t.options["editable"] = "all"
		} else {
			t.options["editable"] = names
		}
	}
}

// Expires is the longest that each wait may take, in whole milliseconds. The host's default where nothing is said.
func Expires(after time.Duration) WaitOption {
	return func(t *Tool) { t.options["expires_ms"] = after.Milliseconds() }
}

// Prompt is what a person is shown: {name} is a top-level argument, {/json/pointer} one within, {{ and }} are braces.
func Prompt(template string) WaitOption {
	return func(t *Tool) { t.options["prompt"] = template }
}

// ContextKeys names the members of the turn's context that are shown with a wait; none, if there are no names. Without this
// option, the context is shown whole.
func ContextKeys(names ...string) WaitOption {
	return func(t *Tool) { t.options["context_keys"] = append([]string{}, names...) }
}

// Timeout is the longest that one run may take, in whole milliseconds. The host's default where nothing is said.
func Timeout(after time.Duration) RunOption {
	return func(t *Tool) { t.options["timeout_ms"] = after.Milliseconds() }
}

// Recover says what happens to a call that was running when the host was killed.
func Recover(how Recovery) RunOption {
	return func(t *Tool) { t.options["recovery"] = string(how) }
}

// Recovery is what happens to a call that was running when the host was killed.
type Recovery string

const (
	// RecoverRetry dispatches it again with the same idempotency key. What happens where nothing is declared.
	RecoverRetry Recovery = "retry"
	// RecoverAsk lets a person decide.
	RecoverAsk Recovery = "ask"
	// RecoverFail ends it `in_doubt`.
	RecoverFail Recovery = "fail"
)

// AnswerOnExpiry is the answer when nobody gives one.
func AnswerOnExpiry(answer any) AnswerOption {
	return func(t *Tool) { t.options["on_expiry"] = map[string]any{"answer": answer} }
}

// Responses are the decisions that the person chooses from. The result is then {"decision": choice, "data": answer}, and
// the answer may be left out.
func Responses(choices ...string) AnswerOption {
	return func(t *Tool) { t.options["responses"] = choices }
}

func set(key string, value any) Option { return func(t *Tool) { t.options[key] = value } }

func hint(key string, value bool) Option { return func(t *Tool) { t.within("hints")[key] = value } }

func retain(key string, value any) Option {
	return func(t *Tool) { t.within("retention")[key] = value }
}
