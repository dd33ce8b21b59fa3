package main

import (
	"fmt"
	"strings"
)

// parseINI reads sections of keys and values: `[section]`, `key = value` or `key: value`, and comments after `;` or `#`
// at the beginning of a line. Keys before the first section are in the section "". Values are text without surrounding
// quotes.
func parseINI(text string) (map[string]any, error) {
	document := map[string]any{}
	section := ""
	for number, line := range strings.Split(text, "\n") {
		line = strings.TrimSpace(strings.TrimPrefix(line, "\uFEFF"))
		if line == "" || line[0] == ';' || line[0] == '#' {
			continue
		}
		if line[0] == '[' {
			if len(line) < 3 || line[len(line)-1] != ']' {
				return nil, fmt.Errorf("line %d: a section is written [name]", number+1)
			}
			section = strings.TrimSpace(line[1 : len(line)-1])
			if _, ok := document[section]; !ok {
				document[section] = map[string]any{}
			}
			continue
		}
		at := strings.IndexAny(line, "=:")
		key := strings.TrimSpace(line[:max(at, 0)])
		if key == "" {
			return nil, fmt.Errorf("line %d: neither a section nor `key = value`", number+1)
		}
		keys, ok := document[section].(map[string]any)
		if !ok {
			keys = map[string]any{}
			document[section] = keys
		}
		if _, twice := keys[key]; twice {
			return nil, fmt.Errorf("line %d: the section has `%s` twice", number+1, key)
		}
		keys[key] = unquoted(strings.TrimSpace(line[at+1:]))
	}
	return document, nil
}

func unquoted(value string) string {
	if len(value) >= 2 && (value[0] == '"' || value[0] == '\'') && value[len(value)-1] == value[0] {
		return value[1 : len(value)-1]
	}
	return value
}
