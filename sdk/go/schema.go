package toolgate

import (
	"encoding"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"time"
)

// Schemer is for types with their own JSON Schema, without remote references. Its draft is 2020-12, unless it belongs to the
// arguments or the result as a whole and its $schema names 2019-09 or draft-07.
type Schemer interface{ JSONSchema() json.RawMessage }

// direction is the direction of values.
type direction uint8

const (
	// input is for arguments. Unknown members are refused, because an approver would believe that they count.
	input direction = iota
	// answer is for the result of a client or a person.
	answer
	// output is for values that Go writes, which can be null in more places.
	output
)

var (
	schemerType   = reflect.TypeFor[Schemer]()
	rawType       = reflect.TypeFor[json.RawMessage]()
	timeType      = reflect.TypeFor[time.Time]()
	numberType    = reflect.TypeFor[json.Number]()
	textType      = reflect.TypeFor[encoding.TextUnmarshaler]()
	textWriteType = reflect.TypeFor[encoding.TextMarshaler]()
	jsonType      = reflect.TypeFor[json.Unmarshaler]()
	jsonWriteType = reflect.TypeFor[json.Marshaler]()
)

// deriver derives the schema of one type. Types that contain themselves become definitions.
type deriver struct {
	direction direction
	open      map[reflect.Type]bool
	names     map[reflect.Type]string
	taken     map[string]bool
	defs      map[string]any
}

// schemaOf derives a JSON Schema (draft 2020-12) from a type. An empty one allows any JSON.
func schemaOf(t reflect.Type, direction direction) (map[string]any, error) {
	d := &deriver{
		direction: direction, open: map[reflect.Type]bool{}, names: map[reflect.Type]string{}, taken: map[string]bool{},
		defs: map[string]any{},
	}
	schema, err := d.schema(t)
	if err != nil {
		return nil, err
	}
	if name, ok := d.names[t]; ok {
		// The root contains itself, so the schema has it both inline and as a definition.
		root := map[string]any{}
		for key, value := range d.defs[name].(map[string]any) {
			root[key] = value
		}
		schema = root
	}
	if len(d.defs) > 0 {
		schema["$defs"] = d.defs
	}
	return schema, nil
}

func (d *deriver) schema(t reflect.Type) (map[string]any, error) {
	if own, ok, err := own(t); ok || err != nil {
		return own, err
	}
	switch {
	case t == rawType:
		return map[string]any{}, nil
	case t == timeType:
		return map[string]any{"type": "string", "format": "date-time"}, nil
	case t == numberType:
		return map[string]any{"type": "number"}, nil
	case t.Kind() == reflect.Pointer:
		schema, err := d.schema(t.Elem())
		return d.nullable(schema), err
	case implements(t, textType) || implements(t, textWriteType):
		return map[string]any{"type": "string"}, nil
	case implements(t, jsonType) || implements(t, jsonWriteType):
		return nil, fmt.Errorf("type %s writes its own JSON, so it has to say its schema: give it a method JSONSchema() json.RawMessage", t)
	}
	switch t.Kind() {
	case reflect.Bool:
		return map[string]any{"type": "boolean"}, nil
	case reflect.String:
		return map[string]any{"type": "string"}, nil
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return integer(t), nil
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return integer(t), nil
	case reflect.Float32, reflect.Float64:
		return map[string]any{"type": "number"}, nil
	case reflect.Interface:
		return map[string]any{}, nil
	case reflect.Slice, reflect.Array, reflect.Map:
		return d.collection(t)
	case reflect.Struct:
		return d.structure(t)
	default:
		return nil, fmt.Errorf("type %s has no JSON form", t)
	}
}

// own returns a type's own schema.
func own(t reflect.Type) (map[string]any, bool, error) {
	if t.Kind() == reflect.Interface || !implements(t, schemerType) {
		return nil, false, nil
	}
	text := reflect.New(t).Interface().(Schemer).JSONSchema()
	var schema map[string]any
	if err := json.Unmarshal(text, &schema); err != nil {
		return nil, true, fmt.Errorf("the schema that %s says is not a JSON object: %w", t, err)
	}
	return schema, true, nil
}

func implements(t, what reflect.Type) bool {
	return t.Implements(what) || reflect.PointerTo(t).Implements(what)
}

// integer returns the bounds of the narrow types. Models do not need those of int and int64.
func integer(t reflect.Type) map[string]any {
	schema := map[string]any{"type": "integer"}
	bits := t.Bits()
	switch t.Kind() {
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		schema["minimum"] = 0
		if bits < 64 && t.Kind() != reflect.Uint {
			schema["maximum"] = uint64(1)<<bits - 1
		}
	case reflect.Int8, reflect.Int16, reflect.Int32:
		schema["minimum"], schema["maximum"] = -(int64(1) << (bits - 1)), int64(1)<<(bits-1)-1
	}
	return schema
}

// nullable allows null in a result where Go writes null.
func (d *deriver) nullable(schema map[string]any) map[string]any {
	if d.direction != output || len(schema) == 0 {
		return schema
	}
	if kind, ok := schema["type"].(string); ok {
		schema["type"] = []string{kind, "null"}
		return schema
	}
	return map[string]any{"anyOf": []any{schema, map[string]any{"type": "null"}}}
}

func (d *deriver) collection(t reflect.Type) (map[string]any, error) {
	if t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Uint8 {
		return d.nullable(map[string]any{"type": "string", "contentEncoding": "base64"}), nil
	}
	items, err := d.schema(t.Elem())
	if err != nil {
		return nil, err
	}
	switch t.Kind() {
	case reflect.Array:
		return map[string]any{"type": "array", "items": items, "minItems": t.Len(), "maxItems": t.Len()}, nil
	case reflect.Slice:
		return d.nullable(map[string]any{"type": "array", "items": items}), nil
	}
	if t.Key().Kind() != reflect.String && !implements(t.Key(), textType) {
		return nil, fmt.Errorf("type %s has keys that are not strings", t)
	}
	return d.nullable(map[string]any{"type": "object", "additionalProperties": items}), nil
}

func (d *deriver) structure(t reflect.Type) (map[string]any, error) {
	if name, ok := d.names[t]; ok {
		return map[string]any{"$ref": "#/$defs/" + name}, nil
	}
	if d.open[t] {
		name := d.name(t)
		d.names[t] = name
		return map[string]any{"$ref": "#/$defs/" + name}, nil
	}
	d.open[t] = true
	defer delete(d.open, t)
	properties, required := map[string]any{}, []string{}
	if err := d.fields(t, properties, &required); err != nil {
		return nil, err
	}
	schema := map[string]any{"type": "object", "properties": properties}
	if d.direction == input {
		schema["additionalProperties"] = false
	}
	if len(required) > 0 {
		schema["required"] = required
	}
	if name, ok := d.names[t]; ok {
		d.defs[name] = schema
		return map[string]any{"$ref": "#/$defs/" + name}, nil
	}
	return schema, nil
}

// name returns a unique name for a definition.
func (d *deriver) name(t reflect.Type) string {
	plain := strings.Map(func(r rune) rune {
		if r == '[' || r == ']' || r == '/' || r == '.' || r == ',' || r == '*' || r == ' ' {
			return '_'
		}
		return r
	}, t.Name())
	if plain == "" {
		plain = "anonymous"
	}
	name := plain
	for n := 2; d.taken[name]; n++ {
		name = fmt.Sprintf("%s_%d", plain, n)
	}
	d.taken[name] = true
	return name
}

func (d *deriver) fields(t reflect.Type, properties map[string]any, required *[]string) error {
	known, err := members(t)
	if err != nil {
		return err
	}
	for _, one := range known {
		if one.quoted {
			return fmt.Errorf("field %s: its tag json says string, which the schema of its type does not", one.field.Name)
		}
		schema, err := d.schema(one.field.Type)
		if err == nil {
			schema, err = annotate(schema, one.field)
		}
		if err != nil {
			return fmt.Errorf("field %s: %w", one.field.Name, err)
		}
		properties[one.name] = schema
		if d.required(one) {
			*required = append(*required, one.name)
		}
	}
	return nil
}

// required reports whether a member is always written, or must be present to be decoded.
func (d *deriver) required(one member) bool {
	if d.direction == output {
		return !one.optional && !one.within
	}
	_, filled := one.field.Tag.Lookup("default")
	return !one.optional && !filled && one.field.Type.Kind() != reflect.Pointer
}
