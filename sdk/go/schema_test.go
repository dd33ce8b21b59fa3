package toolgate

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"
)

type tree struct {
	Name     string `json:"name"`
	Children []tree `json:"children,omitempty" description:"Below it."`
}

type base struct {
	ID string `json:"id"`
}

type other struct{ ID int }

type another struct{ ID int }

type Aside struct{ Note string }

type color string

func (color) JSONSchema() json.RawMessage {
	return json.RawMessage(`{"type":"string","enum":["red","blue"]}`)
}

type drafted struct{}

func (drafted) JSONSchema() json.RawMessage {
	return json.RawMessage(`{"$schema":"http://json-schema.org/draft-07/schema#","type":"object"}`)
}

type large struct{}

func (large) JSONSchema() json.RawMessage {
	return json.RawMessage(`{"type":"object","title":"` + strings.Repeat("x", 200_000) + `"}`)
}

type opaque struct{}

func (opaque) MarshalJSON() ([]byte, error) { return []byte("1"), nil }

func TestSchemasOfTypes(t *testing.T) {
	for _, row := range []struct {
		value     any
		direction direction
		want      string
	}{
		{"", input, `{"type":"string"}`},
		{true, input, `{"type":"boolean"}`},
		{1, input, `{"type":"integer"}`},
		{uint8(1), input, `{"type":"integer","minimum":0,"maximum":255}`},
		{int16(1), input, `{"type":"integer","minimum":-32768,"maximum":32767}`},
		{uint64(1), input, `{"type":"integer","minimum":0}`},
		{1.5, input, `{"type":"number"}`},
		{[]string{}, input, `{"type":"array","items":{"type":"string"}}`},
		{[]string{}, output, `{"type":["array","null"],"items":{"type":"string"}}`},
		{[2]int{}, input, `{"type":"array","items":{"type":"integer"},"minItems":2,"maxItems":2}`},
		{[]byte{}, input, `{"type":"string","contentEncoding":"base64"}`},
		{map[string]int{}, input, `{"type":"object","additionalProperties":{"type":"integer"}}`},
		{time.Time{}, input, `{"type":"string","format":"date-time"}`},
		{json.RawMessage{}, input, `{}`},
		{json.Number(""), input, `{"type":"number"}`},
		{color(""), input, `{"type":"string","enum":["red","blue"]}`},
		{struct {
			base
			A *int           `json:"a"`
			B string         `json:"b,omitempty"`
			C any            `json:"c"`
			D string         `json:"-"`
			e string         //lint:ignore U1000 what is not exported is not in the schema
			F map[string]any `json:",omitempty"`
		}{}, input, `{"type":"object","properties":{"id":{"type":"string"},"a":{"type":"integer"},"b":{"type":"string"},"c":{},
			"F":{"type":"object","additionalProperties":{}}},"required":["id","c"],"additionalProperties":false}`},
		{struct {
			A *int `json:"a"`
		}{}, output, `{"type":"object","properties":{"a":{"type":["integer","null"]}},"required":["a"]}`},
		{struct {
			A string   `json:"a" description:"An a, really." enum:"x,y" default:"x" title:"A"`
			B []int    `json:"b" minimum:"1" maxItems:"9" enum:"1,2"`
			C float64  `json:"c" exclusiveMinimum:"0" multipleOf:"0.5" example:"1.5"`
			D string   `json:"d" pattern:"^a,b$" minLength:"1" format:"email"`
			E []string `json:"e" uniqueItems:"true" default:"[\"q\"]"`
		}{}, input, `{"type":"object","properties":{
			"a":{"type":"string","description":"An a, really.","enum":["x","y"],"default":"x","title":"A"},
			"b":{"type":"array","items":{"type":"integer","minimum":1,"enum":[1,2]},"maxItems":9},
			"c":{"type":"number","exclusiveMinimum":0,"multipleOf":0.5,"examples":[1.5]},
			"d":{"type":"string","pattern":"^a,b$","minLength":1,"format":"email"},
			"e":{"type":"array","items":{"type":"string"},"uniqueItems":true,"default":["q"]}},
			"required":["b","c","d"],"additionalProperties":false}`},
		{tree{}, answer, `{"type":"object","properties":{"name":{"type":"string"},"children":{"type":"array","description":"Below it.",
			"items":{"$ref":"#/$defs/tree"}}},"required":["name"],"$defs":{"tree":{"type":"object","properties":{"name":{"type":"string"},
			"children":{"type":"array","description":"Below it.","items":{"$ref":"#/$defs/tree"}}},"required":["name"]}}}`},
		{struct {
			Root tree `json:"root" description:"The root."`
		}{}, input, `{"type":"object","properties":{"root":{"$ref":"#/$defs/tree","description":"The root."}},"required":["root"],
			"additionalProperties":false,"$defs":{"tree":{"type":"object","properties":{"name":{"type":"string"},
			"children":{"type":"array","description":"Below it.","items":{"$ref":"#/$defs/tree"}}},"required":["name"],
			"additionalProperties":false}}}`},
		{struct {
			other
			*Aside
			ID  string `description:"It hides what is embedded."`
			Two int    `json:"two"`
		}{}, output, `{"type":"object","properties":{"ID":{"type":"string","description":"It hides what is embedded."},
			"two":{"type":"integer"},"Note":{"type":"string"}},"required":["ID","two"]}`},
		{drafted{}, input, `{"$schema":"http://json-schema.org/draft-07/schema#","type":"object"}`},
		{struct {
			other
			another
		}{}, input, `{"type":"object","properties":{},"additionalProperties":false}`},
		{struct {
			A *string   `json:"a" enum:"x,y" default:"x" example:"y"`
			B *int      `json:"b" enum:"1,2"`
			C []*string `json:"c" enum:"x"`
		}{}, output, `{"type":"object","properties":{
			"a":{"type":["string","null"],"enum":["x","y",null],"default":"x","examples":["y"]},
			"b":{"type":["integer","null"],"enum":[1,2,null]},
			"c":{"type":["array","null"],"items":{"type":["string","null"],"enum":["x",null]}}},"required":["a","b","c"]}`},
	} {
		schema, err := schemaOf(reflect.TypeOf(row.value), row.direction)
		if err != nil {
			t.Errorf("%T: %v", row.value, err)
			continue
		}
		var got, want any
		text, _ := json.Marshal(schema)
		_ = json.Unmarshal(text, &got)
		if err := json.Unmarshal([]byte(row.want), &want); err != nil {
			t.Fatalf("%s: %v", row.want, err)
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%T is\n  %s\nand not\n  %s", row.value, text, row.want)
		}
	}
}

func TestTypesWithoutSchemaAreNamed(t *testing.T) {
	for _, row := range []struct {
		value any
		want  string
	}{
		{make(chan int), "chan int has no JSON form"},
		{map[float64]int{}, "keys that are not strings"},
		{opaque{}, "has to say its schema"},
		{struct {
			A int `minimum:"one"`
		}{}, `field A: tag minimum: "one" is not a number`},
		{struct {
			A int `json:"a,string"`
		}{}, "field A: its tag json says string"},
		{struct {
			A int `enum:"1,x"`
		}{}, `field A: tag enum: "x" is not JSON`},
	} {
		_, err := schemaOf(reflect.TypeOf(row.value), input)
		if err == nil || !strings.Contains(err.Error(), row.want) {
			t.Errorf("%T: %v", row.value, err)
		}
	}
}

func TestFindings(t *testing.T) {
	type args struct {
		A string `json:"a"`
	}
	run := func(*Call, args) (any, error) { return nil, nil }
	broken := func(*Call, chan int) (any, error) { return nil, nil }
	list := func(*Call, []string) (any, error) { return nil, nil }
	for _, row := range []struct {
		tool *Tool
		want string // "" where it is legal
	}{
		{Server("ok", "Does.", run), ""},
		{Server("ok", "Does.", func(*Call, large) (any, error) { return nil, nil }), ""},
		{Server("ok", "Does.", run, RequiresApproval(), Prompt("{a} {/a/0} {{}}"), Editable(), OnExpiry(ExpiryDeny)), ""},
		{Server("", "Does.", run), "a name is 1 to 64"},
		{Server("näme", "Does.", run), "a name is 1 to 64"},
		{Server("x", " ", run), "the description is empty"},
		{Server("x", "Does.", broken), "the arguments: type chan int has no JSON form"},
		{Server("x", "Does.", list), "the arguments must be a struct"},
		{Server("x", "Does.", run, Title("")), "`title` has 1 to 128 characters"},
		{Server("x", "Does.", run, Timeout(0)), "`timeout_ms` is 1 to 86400000"},
		{Server("x", "Does.", run, Prompt("{a}")), "`prompt` says nothing about a tool that nobody is asked about"},
		{Server("x", "Does.", run, RequiresApproval(), Prompt("{b}")), "`prompt` shows `b`, which is not an argument"},
		{Server("x", "Does.", run, RequiresApproval(), Prompt("{a")), "`{` without a `}`"},
		{Server("x", "Does.", run, RequiresApproval(), Prompt("a}")), "`}` without a `{`"},
		{Server("x", "Does.", run, RequiresApproval(), Prompt("{a b}")), "neither an argument's name nor"},
		{Server("x", "Does.", run, RequiresApproval(), Editable("b")), "`editable` names `b`"},
		{Server("x", "Does.", run, ReadOnly(), Destructive()), "both read-only and destructive"},
		{Server("x", "Does.", run, NeverEvict(), KeepLatest(1)), "contradicts the other bounds"},
		{Server("x", "Does.", run, KeepForTurns(0)), "at least 1"},
		{Server("x", "Does.", run, RemoveAfterDays(0)), "at least 1"},
		{Client[args, string]("x", "Does.", Expires(time.Hour*24*366)), "`expires_ms` is 1 to"},
		{Client[args, string]("x", "Does.", ContextKeys("a", "a")), "`context_keys` are at most 64"},
		{Human[args, string]("x", "Asks.", Responses()), "`responses` are 1 to 16"},
		{Human[args, string]("x", "Asks.", Responses("open")), "the host's own word"},
	} {
		findings := row.tool.findings(map[string]bool{})
		if row.want == "" && len(findings) == 0 {
			continue
		}
		if row.want == "" || len(findings) != 1 || !strings.Contains(findings[0], row.want) {
			t.Errorf("%q is not the finding: %q", row.want, findings)
		}
	}
	if twice := Server("x", "Does.", run).findings(map[string]bool{"x": true}); len(twice) != 1 {
		t.Errorf("a name that is taken: %q", twice)
	}
}
