package toolgate

import (
	"bytes"
	"encoding"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// decode decodes the arguments. The host has checked them against the schema, and this refuses what a schema cannot exclude.
//
// Names must match exactly, as they do in the schema, in the operator's rules and for the approver. encoding/json alone would accept
// `Amount` for `amount`.
func decode[A any](text string) (arguments A, err error) {
	if !json.Valid([]byte(text)) {
		return arguments, InvalidArguments("the arguments are not JSON")
	}
	err = readAll(text, reflect.ValueOf(&arguments).Elem())
	var failure *Failure
	if err != nil && !errors.As(err, &failure) {
		err = InvalidArguments("%w", err)
	}
	return arguments, err
}

// readAll reads a JSON text into a value, and calls the method Validate of its type.
func readAll(text string, into reflect.Value) error {
	if err := read("", json.RawMessage(text), into); err != nil {
		return err
	}
	if checked, ok := into.Addr().Interface().(interface{ Validate() error }); ok {
		return checked.Validate()
	}
	return nil
}

// read decodes a JSON value into a Go value. An error names the place as a JSON Pointer. Types with an own decoder use it.
func read(place string, raw json.RawMessage, into reflect.Value) error {
	t := into.Type()
	if implements(t, jsonType) || implements(t, textType) || t.Kind() == reflect.Interface || isNull(raw) {
		return plain(place, raw, into)
	}
	switch t.Kind() {
	case reflect.Pointer:
		into.Set(reflect.New(t.Elem()))
		return read(place, raw, into.Elem())
	case reflect.Struct:
		return object(place, raw, into)
	case reflect.Map:
		return dictionary(place, raw, into)
	case reflect.Slice, reflect.Array:
		if t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Uint8 {
			return plain(place, raw, into)
		}
		return list(place, raw, into)
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return plain(place, whole(raw), into)
	default:
		return plain(place, raw, into)
	}
}

func isNull(raw json.RawMessage) bool { return string(bytes.TrimSpace(raw)) == "null" }

// plain leaves a value to encoding/json.
func plain(place string, raw json.RawMessage, into reflect.Value) error {
	err := json.Unmarshal(raw, into.Addr().Interface())
	if err == nil {
		return nil
	}
	var mismatch *json.UnmarshalTypeError
	if errors.As(err, &mismatch) {
		return fmt.Errorf("%s: %s does not fit %s", or(place), mismatch.Value, mismatch.Type)
	}
	return fmt.Errorf("%s: %s", or(place), strings.TrimPrefix(err.Error(), "json: "))
}

// or names the place of the arguments as a whole.
func or(place string) string {
	if place == "" {
		return "/"
	}
	return place
}

// object decodes a struct. Absent members get their defaults.
func object(place string, raw json.RawMessage, into reflect.Value) error {
	given := map[string]json.RawMessage{}
	if err := parts(place, raw, into.Type(), &given); err != nil {
		return err
	}
	known, err := members(into.Type())
	if err != nil {
		return fmt.Errorf("%s: %w", or(place), err)
	}
	// A type's own schema may allow members that the type lacks.
	open := implements(into.Type(), schemerType)
	var meant []member
	for _, one := range known {
		value, ok := given[one.name]
		delete(given, one.name)
		if !ok || !open {
			meant = append(meant, one)
		}
		if !ok {
			if value, err = absent(one); err != nil {
				return fmt.Errorf("%s: %w", or(place), err)
			}
			if value == nil {
				continue
			}
		}
		if one.quoted {
			var text string
			if json.Unmarshal(value, &text) == nil {
				value = json.RawMessage(text)
			}
		}
		if err := read(step(place, one.name), value, at(into, one.index)); err != nil {
			return err
		}
	}
	if len(given) == 0 {
		return nil
	}
	var names []string
	for name := range given {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, one := range meant {
		for _, name := range names {
			if strings.EqualFold(one.name, name) {
				return fmt.Errorf("%s: there is no such argument; did you mean `%s`?", step(place, name), one.name)
			}
		}
	}
	if open {
		return nil
	}
	return fmt.Errorf("%s: there is no such argument", step(place, names[0]))
}

// absent returns the default of a member, or nil.
func absent(one member) (json.RawMessage, error) {
	text, ok := one.field.Tag.Lookup("default")
	if !ok {
		return nil, nil
	}
	schema, err := schemaOf(one.field.Type, input)
	if err != nil {
		return nil, err
	}
	value, err := literal(text, schema)
	if err != nil {
		return nil, err
	}
	return encode(value)
}

// at returns the field of a struct. It allocates embedded pointers on the way.
func at(into reflect.Value, index []int) reflect.Value {
	for _, i := range index {
		if into.Kind() == reflect.Pointer {
			if into.IsNil() {
				into.Set(reflect.New(into.Type().Elem()))
			}
			into = into.Elem()
		}
		into = into.Field(i)
	}
	return into
}

func dictionary(place string, raw json.RawMessage, into reflect.Value) error {
	if key := into.Type().Key(); key.Kind() != reflect.String && !implements(reflect.PointerTo(key), textType) {
		return plain(place, raw, into) // numbers, which only a type with its own schema has
	}
	given := map[string]json.RawMessage{}
	if err := parts(place, raw, into.Type(), &given); err != nil {
		return err
	}
	into.Set(reflect.MakeMapWithSize(into.Type(), len(given)))
	for name, part := range given {
		value := reflect.New(into.Type().Elem()).Elem()
		if err := read(step(place, name), part, value); err != nil {
			return err
		}
		key := reflect.New(into.Type().Key())
		if reads, ok := key.Interface().(encoding.TextUnmarshaler); !ok {
			key.Elem().SetString(name)
		} else if err := reads.UnmarshalText([]byte(name)); err != nil {
			return fmt.Errorf("%s: %w", step(place, name), err)
		}
		into.SetMapIndex(key.Elem(), value)
	}
	return nil
}

func list(place string, raw json.RawMessage, into reflect.Value) error {
	var given []json.RawMessage
	if err := parts(place, raw, into.Type(), &given); err != nil {
		return err
	}
	if into.Kind() == reflect.Slice {
		into.Set(reflect.MakeSlice(into.Type(), len(given), len(given)))
	} else if len(given) != into.Len() {
		return fmt.Errorf("%s: %d items do not fit %s", or(place), len(given), into.Type())
	}
	for i, part := range given {
		if err := read(step(place, strconv.Itoa(i)), part, into.Index(i)); err != nil {
			return err
		}
	}
	return nil
}

// parts splits an object or a list.
func parts(place string, raw json.RawMessage, of reflect.Type, given any) error {
	var mismatch *json.UnmarshalTypeError
	if err := json.Unmarshal(raw, given); errors.As(err, &mismatch) {
		return fmt.Errorf("%s: %s does not fit %s", or(place), mismatch.Value, of)
	} else if err != nil {
		return fmt.Errorf("%s: %s", or(place), strings.TrimPrefix(err.Error(), "json: "))
	}
	return nil
}

// step is the place of a member or an item below a place.
func step(place, name string) string {
	return place + "/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(name)
}

// mostDigits is more digits than any Go integer has.
const mostDigits = 40

// whole rewrites a number that is an integer in JSON Schema as Go decodes one: 3.0 and 3e0 become 3. Others stay as they are.
func whole(raw json.RawMessage) json.RawMessage {
	text, sign := string(bytes.TrimSpace(raw)), ""
	if rest, ok := strings.CutPrefix(text, "-"); ok {
		text, sign = rest, "-"
	}
	mantissa, power, _ := strings.Cut(strings.ToLower(text), "e")
	before, after, _ := strings.Cut(mantissa, ".")
	after = strings.TrimRight(after, "0")
	exponent, err := strconv.Atoi(power)
	if power != "" && err != nil {
		return raw
	}
	digits, zeros := before+after, exponent-len(after)
	if strings.Trim(digits, "0") == "" && digits != "" && strings.IndexFunc(digits, notDigit) < 0 {
		return json.RawMessage("0")
	}
	for ; zeros < 0 && strings.HasSuffix(digits, "0"); zeros++ {
		digits = digits[:len(digits)-1]
	}
	if strings.IndexFunc(digits, notDigit) >= 0 || zeros < 0 || zeros > mostDigits {
		return raw
	}
	return json.RawMessage(sign + strings.TrimLeft(digits, "0") + strings.Repeat("0", zeros))
}

func notDigit(r rune) bool { return r < '0' || r > '9' }
