package toolgate

import (
	"fmt"
	"reflect"
	"strings"
	"sync"
)

// member is a field of a struct as encoding/json sees it. Fields of embedded structs are members of the outer one.
type member struct {
	name     string
	field    reflect.StructField
	index    []int
	tagged   bool
	optional bool // its tag has omitempty or omitzero
	within   bool // it is behind an embedded pointer, which may be nil
	quoted   bool // its tag has string
}

// listed caches members: a list of ten thousand structs needs those of one type.
var listed sync.Map

// members lists the members of a struct in their order. If several have one name, it takes the shallowest, then the one whose tag
// has the name. If several remain, it takes none.
func members(t reflect.Type) ([]member, error) {
	if kept, ok := listed.Load(t); ok {
		return kept.([]member), nil
	}
	found, err := fieldsOf(t, member{}, map[reflect.Type]bool{})
	if err != nil {
		return nil, err
	}
	best, several := map[string]int{}, map[string]bool{}
	for at, one := range found {
		other, ok := best[one.name]
		switch {
		case !ok || one.before(found[other]):
			best[one.name], several[one.name] = at, false
		case !found[other].before(one):
			several[one.name] = true
		}
	}
	kept := []member{}
	for at, one := range found {
		if best[one.name] == at && !several[one.name] {
			kept = append(kept, one)
		}
	}
	listed.Store(t, kept)
	return kept, nil
}

// before reports whether this member wins against one with the same name.
func (m member) before(other member) bool {
	if len(m.index) != len(other.index) {
		return len(m.index) < len(other.index)
	}
	return m.tagged && !other.tagged
}

func fieldsOf(t reflect.Type, outer member, open map[reflect.Type]bool) ([]member, error) {
	if open[t] {
		return nil, nil // embedded in itself: what it has is there already, and shallower
	}
	open[t] = true
	defer delete(open, t)
	var found []member
	for i := range t.NumField() {
		field := t.Field(i)
		if field.Tag.Get("json") == "-" {
			continue
		}
		tagged, optional, quoted := jsonTag(field)
		one := member{
			name: tagged, field: field, index: append(append([]int{}, outer.index...), i), tagged: tagged != "",
			optional: optional, within: outer.within,
		}
		inner := field.Type
		if inner.Kind() == reflect.Pointer {
			inner = inner.Elem()
		}
		if field.Anonymous && tagged == "" && inner.Kind() == reflect.Struct {
			pointer := field.Type.Kind() == reflect.Pointer
			if pointer && !field.IsExported() {
				return nil, fmt.Errorf("field %s: encoding/json cannot make what a pointer to an unexported type embeds", field.Name)
			}
			one.within = outer.within || pointer
			deeper, err := fieldsOf(inner, one, open)
			if err != nil {
				return nil, err
			}
			found = append(found, deeper...)
			continue
		}
		if !field.IsExported() {
			continue
		}
		one.quoted = quoted
		if one.name == "" {
			one.name = field.Name
		}
		found = append(found, one)
	}
	return found, nil
}

// jsonTag returns the name in a tag, whether an empty field is left out, and whether the field is written as a string.
func jsonTag(field reflect.StructField) (name string, optional, quoted bool) {
	name, rest, _ := strings.Cut(field.Tag.Get("json"), ",")
	for _, option := range strings.Split(rest, ",") {
		optional = optional || option == "omitempty" || option == "omitzero"
		quoted = quoted || option == "string"
	}
	return name, optional, quoted
}
