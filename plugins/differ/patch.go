package main

import (
	"fmt"
	"strconv"
	"strings"

	"toolgate"
)

// maxValues bounds the document that a patch produces: `copy` of a part into itself doubles it at each step.
const maxValues = 1_000_000

// apply applies a JSON Patch (RFC 6902) and returns the new document. If one step fails, nothing is applied.
func apply(document any, patch []operation) (any, error) {
	values := count(document)
	for number, operation := range patch {
		next, more, err := one(document, operation)
		if err == nil && values+more > maxValues {
			err = fmt.Errorf("the document would have more than %d values", maxValues)
		}
		if err != nil {
			return nil, toolgate.InvalidArguments("/patch/%d: %s %s: %w", number, operation.Op, operation.Path, err)
		}
		document = next
		values += more
	}
	return document, nil
}

// one applies one step and returns an upper bound of the values that it added.
func one(document any, operation operation) (next any, more int, err error) {
	path, err := steps(operation.Path)
	if err != nil {
		return nil, 0, err
	}
	var value any
	switch operation.Op {
	case "add", "replace", "test":
		if operation.Value == nil {
			return nil, 0, fmt.Errorf("it has no `value`")
		}
		if value, err = read(operation.Value); err != nil {
			return nil, 0, err
		}
	case "move", "copy":
		if operation.From == nil {
			return nil, 0, fmt.Errorf("it has no `from`")
		}
		from, err := steps(*operation.From)
		if err != nil {
			return nil, 0, err
		}
		if value, err = find(document, from); err != nil {
			return nil, 0, err
		}
		if operation.Op == "move" {
			if operation.Path != *operation.From && strings.HasPrefix(operation.Path+"/", *operation.From+"/") {
				return nil, 0, fmt.Errorf("a value cannot be moved into itself")
			}
			if len(from) == 0 {
				return document, 0, nil
			}
			if document, err = along(document, from, remove); err != nil {
				return nil, 0, err
			}
		}
	}
	switch operation.Op {
	case "test":
		found, err := find(document, path)
		if err == nil && !equal(found, value) {
			err = fmt.Errorf("the document has another value there")
		}
		return document, 0, err
	case "remove":
		if len(path) == 0 {
			return nil, 0, fmt.Errorf("the whole document cannot be removed")
		}
		next, err = along(document, path, remove)
		return next, 0, err
	case "add", "move", "copy":
		next, err = put(document, path, value, insert)
	case "replace":
		next, err = put(document, path, value, replace)
	default:
		return nil, 0, fmt.Errorf("there is no such operation")
	}
	if operation.Op != "move" {
		more = count(value)
	}
	return next, more, err
}

// steps reads a JSON Pointer (RFC 6901).
func steps(pointer string) ([]string, error) {
	if pointer == "" {
		return nil, nil
	}
	if pointer[0] != '/' {
		return nil, fmt.Errorf("a JSON Pointer begins with a slash")
	}
	parts := strings.Split(pointer[1:], "/")
	for i, part := range parts {
		if strings.Contains(strings.NewReplacer("~0", "", "~1", "").Replace(part), "~") {
			return nil, fmt.Errorf("a tilde in a JSON Pointer is written ~0")
		}
		parts[i] = strings.NewReplacer("~1", "/", "~0", "~").Replace(part)
	}
	return parts, nil
}

// index reads a position in a list with this many items.
func index(step string, count int) (int, error) {
	number, err := strconv.Atoi(step)
	if err != nil || strconv.Itoa(number) != step || number < 0 {
		return 0, fmt.Errorf("%q is not a place in a list", step)
	}
	if number >= count {
		return 0, fmt.Errorf("the list has no place %d", number)
	}
	return number, nil
}

func find(value any, path []string) (any, error) {
	for _, step := range path {
		switch inside := value.(type) {
		case map[string]any:
			found, ok := inside[step]
			if !ok {
				return nil, fmt.Errorf("there is no %q", step)
			}
			value = found
		case []any:
			at, err := index(step, len(inside))
			if err != nil {
				return nil, err
			}
			value = inside[at]
		default:
			return nil, fmt.Errorf("there is nothing within %q", step)
		}
	}
	return value, nil
}

// edit changes the object or list that contains the last step of a path, and returns its new value.
type edit func(inside any, step string) (any, error)

func put(document any, path []string, value any, how func(any) edit) (any, error) {
	if len(path) == 0 {
		return value, nil
	}
	return along(document, path, how(value))
}

// along follows a path and copies what it changes, so that a value that was copied elsewhere does not change.
func along(value any, path []string, edit edit) (any, error) {
	if len(path) == 1 {
		return edit(value, path[0])
	}
	child, err := find(value, path[:1])
	if err != nil {
		return nil, err
	}
	if child, err = along(child, path[1:], edit); err != nil {
		return nil, err
	}
	return replace(child)(value, path[0])
}

func copied(object map[string]any) map[string]any {
	other := make(map[string]any, len(object)+1)
	for key, value := range object {
		other[key] = value
	}
	return other
}

func insert(value any) edit {
	return func(inside any, step string) (any, error) {
		switch inside := inside.(type) {
		case map[string]any:
			other := copied(inside)
			other[step] = value
			return other, nil
		case []any:
			at := len(inside)
			if step != "-" {
				var err error
				if at, err = index(step, len(inside)+1); err != nil {
					return nil, err
				}
			}
			other := append(append(make([]any, 0, len(inside)+1), inside[:at]...), value)
			return append(other, inside[at:]...), nil
		default:
			return nil, fmt.Errorf("%q is neither in an object nor in a list", step)
		}
	}
}

func replace(value any) edit {
	return func(inside any, step string) (any, error) {
		if _, err := find(inside, []string{step}); err != nil {
			return nil, err
		}
		if object, ok := inside.(map[string]any); ok {
			other := copied(object)
			other[step] = value
			return other, nil
		}
		list := inside.([]any)
		at, err := index(step, len(list))
		if err != nil {
			return nil, err
		}
		other := append([]any(nil), list...)
		other[at] = value
		return other, nil
	}
}

func remove(inside any, step string) (any, error) {
	if _, err := find(inside, []string{step}); err != nil {
		return nil, err
	}
	if object, ok := inside.(map[string]any); ok {
		other := copied(object)
		delete(other, step)
		return other, nil
	}
	list := inside.([]any)
	at, err := index(step, len(list))
	if err != nil {
		return nil, err
	}
	return append(append(make([]any, 0, len(list)), list[:at]...), list[at+1:]...), nil
}

// count returns the number of values inside a value, itself included.
func count(value any) int {
	values := 1
	switch value := value.(type) {
	case map[string]any:
		for _, inside := range value {
			values += count(inside)
		}
	case []any:
		for _, inside := range value {
			values += count(inside)
		}
	}
	return values
}
