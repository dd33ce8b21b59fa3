package toolgate

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"
)

type line struct {
	Price int     `json:"price"`
	Unit  *string `json:"unit,omitempty" default:"piece"`
}

type purchase struct {
	base
	Amount int64                `json:"amount" maximum:"100"`
	Colour string               `json:"colour,omitempty" enum:"red,blue" default:"red"`
	Tags   []string             `json:"tags" default:"[\"new\"]"`
	Lines  []line               `json:"lines,omitempty"`
	By     map[string]line      `json:"by,omitempty"`
	When   map[weekday]*float64 `json:"when,omitempty"`
	At     *time.Time           `json:"at,omitempty"`
	Raw    json.RawMessage      `json:"raw,omitempty"`
	Pair   [2]uint8             `json:"pair,omitzero"`
	Any    any                  `json:"any,omitempty"`
}

type weekday int

func (w *weekday) UnmarshalText(text []byte) error {
	return json.Unmarshal(text, (*int)(w))
}

// loose declares its own schema, which allows members that the struct does not have.
type loose struct {
	Amount int `json:"amount"`
}

func (loose) JSONSchema() json.RawMessage { return json.RawMessage(`{"type":"object"}`) }

// selfsaid declares its own schema, so its fields may have types without a derived schema.
type selfsaid struct {
	ID    int64          `json:"id,string"`
	ByDay map[int]string `json:"by_day"`
}

func (selfsaid) JSONSchema() json.RawMessage { return json.RawMessage(`{"type":"object"}`) }

func TestArguments(t *testing.T) {
	piece, box, half := "piece", "box", 0.5
	noon := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	whole := purchase{
		base: base{"a"}, Amount: 9007199254740993, Colour: "blue", Tags: []string{}, Lines: []line{{2, &box}, {3, &piece}},
		By: map[string]line{"x/y": {1, &piece}}, When: map[weekday]*float64{3: &half}, At: &noon,
		Raw: json.RawMessage(`{"Amount": "<"}`), Pair: [2]uint8{1, 255}, Any: map[string]any{"Amount": 1.0},
	}
	for text, want := range map[string]purchase{
		`{"id":"a","amount":9007199254740993,"colour":"blue","tags":[],"lines":[{"price":2,"unit":"box"},{"price":3}],
		  "by":{"x/y":{"price":1}},"when":{"3":0.5},"at":"2026-01-02T12:00:00Z","raw":{"Amount": "<"},"pair":[1,255],"any":{"Amount":1}}`: whole,
		`{"id":"","amount":1}`:                             {Amount: 1, Colour: "red", Tags: []string{"new"}},
		`{"id":"","amount":1,"colour":"","tags":null}`:     {Amount: 1},
		`{"id":"","amount":3.0,"colour":"","tags":[]}`:     {Amount: 3, Tags: []string{}},
		`{"id":"","amount":-1.20e2,"colour":"","tags":[]}`: {Amount: -120, Tags: []string{}},
		`{"id":"","amount":-0.0,"colour":"","tags":[]}`:    {Tags: []string{}},
		`{"id":"","amount":500e-1,"colour":"","tags":[]}`:  {Amount: 50, Tags: []string{}},
	} {
		got, err := decode[purchase](text)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s is\n  %+v %v\nand not\n  %+v", text, got, err, want)
		}
	}
	if open, err := decode[loose](`{"amount":1,"Amount":2}`); err != nil || open.Amount != 1 {
		t.Errorf("%+v %v", open, err)
	}
	if _, err := decode[loose](`{"Amount":2}`); err == nil || err.Error() != "/Amount: there is no such argument; did you mean `amount`?" {
		t.Errorf("it would be lost: %v", err)
	}
	want := selfsaid{ID: 9007199254740993, ByDay: map[int]string{3: "x"}}
	if got, err := decode[selfsaid](`{"id":"9007199254740993","by_day":{"3":"x"}}`); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%+v %v", got, err)
	}
}

// Refused arguments have a position, and are never read as others.
func TestArgumentsThatAreRefused(t *testing.T) {
	for _, row := range []struct{ more, want string }{
		{`"Amount":50000`, "/Amount: there is no such argument; did you mean `amount`?"},
		{`"ID":"b"`, "/ID: there is no such argument; did you mean `id`?"},
		{`"base":{}`, "/base: there is no such argument"},
		{`"lines":[{"price":1},{"price":2,"Price":3}]`, "/lines/1/Price: there is no such argument; did you mean `price`?"},
		{`"by":{"x/y":{"price":1,"PRICE":2}}`, "/by/x~1y/PRICE: there is no such argument; did you mean `price`?"},
		{`"lines":[{"price":1},{"price":"x"}]`, "/lines/1/price: string does not fit int"},
		{`"lines":[{"price":1.5}]`, "/lines/0/price: number 1.5 does not fit int"},
		{`"lines":[{"price":1e999999999}]`, "/lines/0/price: number 1e999999999 does not fit int"},
		{`"lines":{}`, "/lines: object does not fit []toolgate.line"},
		{`"lines":[1]`, "/lines/0: number does not fit toolgate.line"},
		{`"pair":[1]`, "/pair: 1 items do not fit [2]uint8"},
		{`"pair":[1,256]`, "/pair/1: number 256 does not fit uint8"},
		{`"at":"noon"`, "/at: "},
		{`"when":{"x":1}`, "/when/x: "},
		{`"colour":`, "the arguments are not JSON"},
	} {
		_, err := decode[purchase](`{"id":"a","amount":5,` + row.more + `}`)
		if err == nil || !strings.HasPrefix(err.Error(), row.want) {
			t.Errorf("%s: %v", row.more, err)
		}
	}
	if _, err := decode[purchase](`[]`); err == nil || err.Error() != "/: array does not fit toolgate.purchase" {
		t.Error(err)
	}
}
