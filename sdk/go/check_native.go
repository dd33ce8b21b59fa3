//go:build !wasip1

package toolgate

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"toolgate/internal/host"
)

// The host's limits, from the interface.
const (
	maxSchemaDepth = 32
	maxTitle       = 128
	maxPromptBytes = 4 << 10
	maxTimeoutMs   = 86_400_000
	maxExpiresMs   = 31_536_000_000
)

var (
	legalName     = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`)
	legalArgument = regexp.MustCompile(`^[a-zA-Z0-9_-]+$`)
)

func init() {
	host.Declared = func() (tools []host.Tool, findings []string) {
		names := map[string]bool{}
		for _, tool := range registered {
			findings = append(findings, tool.findings(names)...)
		}
		return declarations(), findings
	}
}

// findings are the broken rules that neither types nor a validator of JSON Schema can find. `toolgate check FILE` is the host's own,
// complete check of the built component.
func (t *Tool) findings(names map[string]bool) []string {
	var findings []string
	found := func(format string, args ...any) {
		findings = append(findings, t.name+": "+fmt.Sprintf(format, args...))
	}
	for _, problem := range t.problems {
		found("%s", problem)
	}
	if names[t.name] {
		found("another tool of this plugin has the same name")
	}
	names[t.name] = true
	if !legalName.MatchString(t.name) {
		found("a name is 1 to 64 letters, digits, `_` or `-`")
	}
	if strings.TrimSpace(t.description) == "" {
		found("the description is empty, so no model will know when to use it")
	}
	var parameters map[string]any
	_ = json.Unmarshal(t.parameters, &parameters)
	if parameters["type"] != "object" {
		found("the arguments must be a struct with a field for each")
	}
	checkSchema("parameters", t.parameters, found)
	for _, key := range []string{"result", "response"} {
		if schema, ok := t.options[key]; ok {
			checkSchema(key, mustEncode(schema), found)
		}
	}
	properties, _ := parameters["properties"].(map[string]any)
	t.checkWaits(properties, found)
	t.checkOptions(found)
	return findings
}

func checkSchema(what string, text json.RawMessage, found func(string, ...any)) {
	var schema any
	_ = json.Unmarshal(text, &schema)
	if depth(schema) > maxSchemaDepth {
		found("`%s` is nested deeper than %d", what, maxSchemaDepth)
	}
}

func depth(value any) int {
	deepest := 0
	switch value := value.(type) {
	case []any:
		for _, item := range value {
			deepest = max(deepest, depth(item))
		}
	case map[string]any:
		for _, item := range value {
			deepest = max(deepest, depth(item))
		}
	default:
		return 0
	}
	return deepest + 1
}

// checkWaits checks the options about waiting: whether the tool can wait, and whether the named arguments exist.
func (t *Tool) checkWaits(properties map[string]any, found func(string, ...any)) {
	asks := t.gated || t.executor == executorHuman
	waits := asks || t.executor == executorClient || t.options["durable"] == true
	for key, applies := range map[string]bool{
		"prompt": asks, "on_expiry": asks, "editable": t.gated, "expires_ms": waits, "context_keys": waits,
	} {
		if _, said := t.options[key]; said && !applies {
			found("`%s` says nothing about a tool that nobody is asked about: add RequiresApproval()", key)
		}
	}
	if names, ok := t.options["editable"].([]string); ok {
		for _, name := range names {
			if _, ok := properties[name]; !ok {
				found("`editable` names `%s`, which is not an argument", name)
			}
		}
	}
	if template, ok := t.options["prompt"].(string); ok {
		if len(template) > maxPromptBytes {
			found("`prompt` is over %d bytes", maxPromptBytes)
		}
		steps, err := placeholders(template)
		if err != nil {
			found("`prompt` %v", err)
		}
		for _, step := range steps {
			if _, ok := properties[step]; !ok {
				found("`prompt` shows `%s`, which is not an argument", step)
			}
		}
	}
}

func (t *Tool) checkOptions(found func(string, ...any)) {
	if title, ok := t.options["title"].(string); ok {
		if n := utf8.RuneCountInString(title); n < 1 || n > maxTitle {
			found("`title` has 1 to %d characters", maxTitle)
		}
	}
	for key, most := range map[string]int64{"timeout_ms": maxTimeoutMs, "expires_ms": maxExpiresMs} {
		if value, ok := t.options[key].(int64); ok && (value < 1 || value > most) {
			found("`%s` is 1 to %d", key, most)
		}
	}
	if choices, ok := t.options["responses"].([]string); ok {
		if len(choices) < 1 || len(choices) > 16 || !distinct(choices, 64) {
			found("`responses` are 1 to 16 distinct words of 1 to 64 characters")
		}
		for _, word := range []string{"open", "expired", "withdrawn"} {
			if slices.Contains(choices, word) {
				found("`responses` has `%s`, which is the host's own word", word)
			}
		}
	}
	if keys, ok := t.options["context_keys"].([]string); ok && (len(keys) > 64 || !distinct(keys, 128)) {
		found("`context_keys` are at most 64 distinct names of 1 to 128 characters")
	}
	hints, _ := t.options["hints"].(map[string]any)
	if hints["read_only"] == true && hints["destructive"] == true {
		found("a tool cannot be both read-only and destructive")
	}
	retention, _ := t.options["retention"].(map[string]any)
	if retention["never_evict"] == true && len(retention) > 1 {
		found("NeverEvict contradicts the other bounds on retention")
	}
	if retention["max_age_turns"] == uint32(0) || retention["max_count"] == uint32(0) || retention["max_age_days"] == uint32(0) {
		found("bounds on retention are at least 1")
	}
}

// distinct reports whether the words differ and have 1 to most characters each.
func distinct(words []string, most int) bool {
	for i, word := range words {
		if n := utf8.RuneCountInString(word); n < 1 || n > most || slices.Contains(words[:i], word) {
			return false
		}
	}
	return true
}

// placeholders lists the top-level arguments in a prompt's template, or returns the mistake in the template.
func placeholders(template string) (names []string, err error) {
	for rest := template; ; {
		at := strings.IndexAny(rest, "{}")
		if at < 0 {
			return names, nil
		}
		rest = rest[at:]
		if strings.HasPrefix(rest, "{{") || strings.HasPrefix(rest, "}}") {
			rest = rest[2:]
			continue
		}
		if rest[0] == '}' {
			return names, fmt.Errorf("has a `}` without a `{`; write `}}` for a brace")
		}
		end := strings.IndexByte(rest, '}')
		if end < 0 {
			return names, fmt.Errorf("has a `{` without a `}`; write `{{` for a brace")
		}
		inside := rest[1:end]
		rest = rest[end+1:]
		if pointer, ok := strings.CutPrefix(inside, "/"); ok {
			step, _, _ := strings.Cut(pointer, "/")
			names = append(names, strings.NewReplacer("~1", "/", "~0", "~").Replace(step))
		} else if legalArgument.MatchString(inside) {
			names = append(names, inside)
		} else {
			return names, fmt.Errorf("has `{%s}`, which is neither an argument's name nor a JSON Pointer", inside)
		}
	}
}
