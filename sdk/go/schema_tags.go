package toolgate

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
)

// The keywords of a schema for the tags of a field: those of the schema itself, and those of a list's items.
var (
	textTags = map[string]string{
		"description": "description", "title": "title",
	}
	valueTags = map[string]string{
		"minimum": "minimum", "maximum": "maximum", "exclusiveMinimum": "exclusiveMinimum",
		"exclusiveMaximum": "exclusiveMaximum", "multipleOf": "multipleOf", "minLength": "minLength", "maxLength": "maxLength",
	}
	listTags = map[string]string{
		"minItems": "minItems", "maxItems": "maxItems", "uniqueItems": "uniqueItems", "minProperties": "minProperties",
		"maxProperties": "maxProperties",
	}
)

// annotate adds the tags of a field to its schema. On a list, `enum`, `pattern`, `format` and bounds of values apply to its items.
func annotate(schema map[string]any, field reflect.StructField) (map[string]any, error) {
	whole := schema
	if _, ok := schema["$ref"]; ok {
		// Draft 2020-12 allows keywords beside a $ref. A copy keeps them out of other references.
		whole = map[string]any{"$ref": schema["$ref"]}
	}
	each := whole
	if items, ok := whole["items"].(map[string]any); ok {
		each = items
	}
	for tag, keyword := range textTags {
		if text, ok := field.Tag.Lookup(tag); ok {
			whole[keyword] = text
		}
	}
	for _, tag := range []string{"pattern", "format"} {
		if text, ok := field.Tag.Lookup(tag); ok {
			each[tag] = text
		}
	}
	for tag, keyword := range valueTags {
		if err := value(field, tag, each, keyword); err != nil {
			return nil, err
		}
	}
	for tag, keyword := range listTags {
		if err := value(field, tag, whole, keyword); err != nil {
			return nil, err
		}
	}
	if text, ok := field.Tag.Lookup("enum"); ok {
		choices := []any{}
		for _, choice := range strings.Split(text, ",") {
			value, err := literal(choice, each)
			if err != nil {
				return nil, fmt.Errorf("tag enum: %w", err)
			}
			choices = append(choices, value)
		}
		if allows(each, "null") {
			choices = append(choices, nil)
		}
		each["enum"] = choices
	}
	for _, tag := range []string{"default", "example"} {
		if text, ok := field.Tag.Lookup(tag); ok {
			value, err := literal(text, whole)
			if err != nil {
				return nil, fmt.Errorf("tag %s: %w", tag, err)
			}
			if tag == "example" {
				whole["examples"] = []any{value}
			} else {
				whole[tag] = value
			}
		}
	}
	return whole, nil
}

// value adds a number or a boolean from a tag.
func value(field reflect.StructField, tag string, into map[string]any, keyword string) error {
	text, ok := field.Tag.Lookup(tag)
	if !ok {
		return nil
	}
	var value any
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.UseNumber()
	err := decoder.Decode(&value)
	switch value.(type) {
	case json.Number, bool:
		if err == nil && !decoder.More() {
			into[keyword] = value
			return nil
		}
	}
	return fmt.Errorf("tag %s: %q is not a number", tag, text)
}

// literal parses the value of a tag: a string as it is, anything else as JSON.
func literal(text string, schema map[string]any) (any, error) {
	if allows(schema, "string") {
		return text, nil
	}
	var value any
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.UseNumber()
	if err := decoder.Decode(&value); err != nil || decoder.More() {
		return nil, fmt.Errorf("%q is not JSON", text)
	}
	return value, nil
}

// allows reports whether a schema allows this type.
func allows(schema map[string]any, kind string) bool {
	switch kinds := schema["type"].(type) {
	case string:
		return kinds == kind
	case []string:
		return slices.Contains(kinds, kind)
	case []any:
		return slices.Contains(kinds, any(kind))
	}
	return false
}
