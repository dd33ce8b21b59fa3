package toolgate

import "time"

// ServerOption is an option of a server tool. An option does not compile with a kind of tool to which it does not apply.
type ServerOption interface{ forServer(*Tool) }

// ClientOption is an option of a client tool.
type ClientOption interface{ forClient(*Tool) }

// HumanOption is an option of a question to a person.
type HumanOption interface{ forHuman(*Tool) }

// ProviderOption is an option of a tool of the model's provider.
type ProviderOption interface{ forProvider(*Tool) }

// Option is for tools of every kind.
type Option func(*Tool)

func (o Option) forServer(t *Tool)   { o(t) }
func (o Option) forClient(t *Tool)   { o(t) }
func (o Option) forHuman(t *Tool)    { o(t) }
func (o Option) forProvider(t *Tool) { o(t) }

// WaitOption is for tools that can wait: gated tools, durable tools, questions and client tools.
type WaitOption func(*Tool)

func (o WaitOption) forServer(t *Tool) { o(t) }
func (o WaitOption) forClient(t *Tool) { o(t) }
func (o WaitOption) forHuman(t *Tool)  { o(t) }

// GateOption is for tools that can be gated: server tools and client tools.
type GateOption func(*Tool)

func (o GateOption) forServer(t *Tool) { o(t) }
func (o GateOption) forClient(t *Tool) { o(t) }

// RunOption is for server tools only.
type RunOption func(*Tool)

func (o RunOption) forServer(t *Tool) { o(t) }

// AnswerOption is for questions to a person only.
type AnswerOption func(*Tool)

func (o AnswerOption) forHuman(t *Tool) { o(t) }

// Title is a name for people.
func Title(title string) Option { return set("title", title) }

// Risk is the possible harm of a wrong call. Approvers see it, unless the operator sets another one.
func Risk(risk RiskLevel) Option { return set("risk", string(risk)) }

// RiskLevel is the possible harm of a wrong call.
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

// Destructive is a hint: the tool can destroy data.
func Destructive() Option { return hint("destructive", true) }

// Idempotent is a hint: a second call with the same arguments changes nothing more.
func Idempotent() Option { return hint("idempotent", true) }

// OpenWorld is a hint: whether the tool uses an open world, such as the web.
func OpenWorld(open bool) Option { return hint("open_world", open) }

// KeepForTurns keeps a result in a model's context for this many turns.
func KeepForTurns(turns uint32) Option { return retain("max_age_turns", turns) }

// KeepLatest keeps only this many of the tool's latest results in a model's context.
func KeepLatest(count uint32) Option { return retain("max_count", count) }

// RemoveAfterDays lets the host remove a turn with a call of this tool this many days after its end, if its operator allows it.
func RemoveAfterDays(days uint32) Option { return retain("max_age_days", days) }

// NeverEvict keeps all results in a model's context.
func NeverEvict() Option { return retain("never_evict", true) }

// RequiresApproval asks a person before each call.
func RequiresApproval() GateOption { return func(t *Tool) { t.gated = true } }

// Streaming declares that the tool reports progress before its one result.
func Streaming() GateOption { return func(t *Tool) { t.streaming = true } }

// OnExpiry sets the outcome of an approval that expires.
func OnExpiry(outcome Expiry) GateOption {
	return func(t *Tool) { t.options["on_expiry"] = string(outcome) }
}

// Expiry is the outcome of an approval that expires.
type Expiry string

const (
	// ExpiryError ends the call as `expired`. This is the default.
	ExpiryError Expiry = "error"
	// ExpiryDeny ends the call as `denied`.
	ExpiryDeny Expiry = "deny"
	// ExpiryApprove approves the call, if the operator allows this for the tool.
	ExpiryApprove Expiry = "approve"
)

// Editable names the top-level arguments that an approver may change. Without names, all of them.
func Editable(names ...string) GateOption {
	return func(t *Tool) {
		if len(names) == 0 {
			t.options["editable"] = "all"
		} else {
			t.options["editable"] = names
		}
	}
}

// Expires limits each wait, in whole milliseconds. Without it, the host's default applies.
func Expires(after time.Duration) WaitOption {
	return func(t *Tool) { t.options["expires_ms"] = after.Milliseconds() }
}

// Prompt is the text for the person: {name} is a top-level argument, {/json/pointer} a nested one, {{ and }} are braces.
func Prompt(template string) WaitOption {
	return func(t *Tool) { t.options["prompt"] = template }
}

// ContextKeys names the keys of the turn's context that a person sees. Without names, the person sees none. Without this option,
// the person sees the whole context.
func ContextKeys(names ...string) WaitOption {
	return func(t *Tool) { t.options["context_keys"] = append([]string{}, names...) }
}

// Timeout limits one run, in whole milliseconds. Without it, the host's default applies.
func Timeout(after time.Duration) RunOption {
	return func(t *Tool) { t.options["timeout_ms"] = after.Milliseconds() }
}

// Durable lets a call wait in the middle of the function, with package toolgate/durable.
func Durable() RunOption {
	return func(t *Tool) { t.options["durable"] = true }
}

// Recover sets the recovery of a call that was running when the host was killed.
func Recover(how Recovery) RunOption {
	return func(t *Tool) { t.options["recovery"] = string(how) }
}

// Recovery is the treatment of a call that was running when the host was killed. A call of a durable tool always continues after its
// last step. There, it is about an HTTP request that was begun, whose answer was lost, and whose grant does not say `idempotent`; the
// default is RecoverFail.
type Recovery string

const (
	// RecoverRetry runs it again with the same idempotency key. This is the default, except for a durable tool.
	RecoverRetry Recovery = "retry"
	// RecoverAsk lets a person decide.
	RecoverAsk Recovery = "ask"
	// RecoverFail ends it as `in_doubt`.
	RecoverFail Recovery = "fail"
)

// AnswerOnExpiry is the answer of a question that expires.
func AnswerOnExpiry(answer any) AnswerOption {
	return func(t *Tool) { t.options["on_expiry"] = map[string]any{"answer": answer} }
}

// Responses are the decisions that the person can choose. The result is then {"decision": choice, "data": answer}, and the answer
// is optional.
func Responses(choices ...string) AnswerOption {
	return func(t *Tool) { t.options["responses"] = choices }
}

func set(key string, value any) Option { return func(t *Tool) { t.options[key] = value } }

func hint(key string, value bool) Option { return func(t *Tool) { t.within("hints")[key] = value } }

func retain(key string, value any) Option {
	return func(t *Tool) { t.within("retention")[key] = value }
}
