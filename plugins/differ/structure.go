package main

import (
	"bytes"
	"encoding/json"
	"sort"
	"strconv"
	"strings"

	"toolgate"
)

// operation is one step of a JSON Patch.
type operation struct {
	Op    string          `json:"op" enum:"add,remove,replace,move,copy,test"`
	Path  string          `json:"path" description:"A JSON Pointer (RFC 6901)."`
	From  *string         `json:"from,omitempty" description:"A JSON Pointer, for move and copy."`
	Value json.RawMessage `json:"value,omitempty" description:"Any JSON, for add, replace and test."`
}

// read keeps numbers as they were written, so that no digit is lost.
func read(text json.RawMessage) (any, error) {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	var value any
	if err := decoder.Decode(&value); err != nil {
		return nil, toolgate.InvalidArguments("a document is not JSON: %w", err)
	}
	return value, nil
}

// text writes a value with sorted object keys, so that equal values have equal texts.
func text(value any) json.RawMessage {
	out := &bytes.Buffer{}
	encoder := json.NewEncoder(out)
	encoder.SetEscapeHTML(false)
	// A value that was read from JSON can be written as JSON.
	_ = encoder.Encode(value)
	return bytes.TrimSpace(out.Bytes())
}

// equal compares as `test` of RFC 6902: numbers by value, objects regardless of the order of their keys.
func equal(a, b any) bool {
	switch a := a.(type) {
	case json.Number:
		b, ok := b.(json.Number)
		return ok && sameNumber(a.String(), b.String())
	case []any:
		b, ok := b.([]any)
		if !ok || len(a) != len(b) {
			return false
		}
		for i := range a {
			if !equal(a[i], b[i]) {
				return false
			}
		}
		return true
	case map[string]any:
		b, ok := b.(map[string]any)
		if !ok || len(a) != len(b) {
			return false
		}
		for key, value := range a {
			if other, ok := b[key]; !ok || !equal(value, other) {
				return false
			}
		}
		return true
	default:
		return a == b
	}
}

// sameNumber compares digits if both are integers of any size, and doubles otherwise.
func sameNumber(a, b string) bool {
	if a == b {
		return true
	}
	if !strings.ContainsAny(a+b, ".eE") {
		return strings.TrimPrefix(a, "-") == "0" && strings.TrimPrefix(b, "-") == "0"
	}
	x, errx := strconv.ParseFloat(a, 64)
	y, erry := strconv.ParseFloat(b, 64)
	return errx == nil && erry == nil && x == y
}

// differ collects the operations that turn one value into another.
type differ struct {
	stop  func() bool
	steps int
	patch []operation
}

func (d *differ) values(path string, a, b any) error {
	if d.steps++; d.steps%1000 == 0 && d.stop() {
		return toolgate.Failed("stopped after comparing for a while")
	}
	switch a := a.(type) {
	case map[string]any:
		if b, ok := b.(map[string]any); ok {
			return d.objects(path, a, b)
		}
	case []any:
		if b, ok := b.([]any); ok {
			return d.arrays(path, a, b)
		}
	}
	if !equal(a, b) {
		d.add("replace", path, b)
	}
	return nil
}

func (d *differ) add(op, path string, value any) {
	d.patch = append(d.patch, operation{Op: op, Path: path, Value: text(value)})
}

func (d *differ) objects(path string, a, b map[string]any) error {
	keys := make([]string, 0, len(a)+len(b))
	for key := range a {
		keys = append(keys, key)
	}
	for key := range b {
		if _, ok := a[key]; !ok {
			keys = append(keys, key)
		}
	}
	sort.Strings(keys)
	for _, key := range keys {
		at := path + "/" + escape(key)
		before, was := a[key]
		after, is := b[key]
		switch {
		case !is:
			d.patch = append(d.patch, operation{Op: "remove", Path: at})
		case !was:
			d.add("add", at, after)
		default:
			if err := d.values(at, before, after); err != nil {
				return err
			}
		}
	}
	return nil
}

// arrays aligns unchanged items. Changed items are compared in pairs, and surplus ones are added or removed.
func (d *differ) arrays(path string, a, b []any) error {
	changed, _, err := changes(written(a), written(b), func(float64) bool { return d.stop() })
	if err != nil {
		return err
	}
	shift := 0
	for _, change := range changed {
		pairs := min(change.a1-change.a0, change.b1-change.b0)
		for i := range pairs {
			at := path + "/" + strconv.Itoa(change.a0+shift+i)
			if err := d.values(at, a[change.a0+i], b[change.b0+i]); err != nil {
				return err
			}
		}
		at := change.a0 + shift + pairs
		for range change.a1 - change.a0 - pairs {
			d.patch = append(d.patch, operation{Op: "remove", Path: path + "/" + strconv.Itoa(at)})
		}
		for i := range change.b1 - change.b0 - pairs {
			d.add("add", path+"/"+strconv.Itoa(at+i), b[change.b0+pairs+i])
		}
		shift += change.b1 - change.b0 - (change.a1 - change.a0)
	}
	return nil
}

func written(values []any) []string {
	texts := make([]string, len(values))
	for i, value := range values {
		texts[i] = string(text(value))
	}
	return texts
}

// escape writes a key as a step of a JSON Pointer.
func escape(key string) string {
	return strings.ReplaceAll(strings.ReplaceAll(key, "~", "~0"), "/", "~1")
}
