// Host capabilities in one plugin. Its tools: one that works in steps until it is asked to stop, one that counts such calls, one
// that uses every capability and every source of randomness, and the tool of the template with a result that is greater by one.
package main

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	random "math/rand/v2"
	"slices"
	"strings"

	"toolgate"
	"toolgate/config"
	"toolgate/httpclient"
	"toolgate/keyvalue"
)

type Steps struct {
	Steps int `json:"steps" description:"Steps to take." minimum:"1"`
}

type Nothing struct{}

var sum uint32

func work(call *toolgate.Call, args Steps) (int, error) {
	for step := range args.Steps {
		if call.StopRequested() {
			_, err := increment(1)
			return step, err
		}
		call.Progress("a step", float64(step)/float64(args.Steps))
		for n := range uint32(100_000) {
			sum = sum*1_664_525 + n
		}
	}
	return args.Steps, nil
}

func stopped(*toolgate.Call, Nothing) (int64, error) {
	return increment(0)
}

func increment(by int64) (int64, error) {
	bucket, err := keyvalue.Open()
	if err != nil {
		return 0, err
	}
	return bucket.Increment("stopped", by)
}

type Where struct {
	URL string `json:"url"`
}

var early = random.Uint64()

func reach(_ *toolgate.Call, args Where) (map[string]any, error) {
	greeting, there, err := config.Get("greeting")
	if err != nil || !there {
		return nil, err
	}
	_, given, err := config.Get("nothing")
	if err != nil || given {
		return nil, err
	}
	required, err := config.Require("greeting")
	if err != nil {
		return nil, err
	}
	stored, err := store()
	if err != nil {
		return nil, err
	}
	answer, err := httpclient.Do(httpclient.Request{
		Method: "POST", URL: args.URL, Header: []httpclient.Field{{Name: "x-own", Value: "mine"}}, Body: []byte("ping ü"),
	})
	if err != nil {
		return nil, err
	}
	stored["draws"] = []any{early, random.Uint64(), rand.Text()}
	stored["configured"] = []any{greeting, nil, required}
	stored["answer"] = []any{answer.Status, answer.Get("X-Answer"), string(answer.Body)}
	return stored, nil
}

func store() (map[string]any, error) {
	bucket, err := keyvalue.Open()
	if err != nil {
		return nil, err
	}
	if err := bucket.Set("gone", []byte("x")); err != nil {
		return nil, err
	}
	if err := keyvalue.Write(bucket, "kept", []any{1, "ü"}); err != nil {
		return nil, err
	}
	if err := bucket.Delete("gone"); err != nil {
		return nil, err
	}
	count := 0
	if err := keyvalue.Update(bucket, "count", func(value *int) error { *value++; count = *value; return nil }); err != nil {
		return nil, err
	}
	kept, there, err := keyvalue.Read[any](bucket, "kept")
	if err != nil {
		return nil, err
	}
	_, gone, err := bucket.Get("gone")
	if err != nil {
		return nil, err
	}
	sum, err := bucket.Increment("sum", 2)
	if err != nil {
		return nil, err
	}
	keys, err := bucket.Keys("")
	slices.Sort(keys)
	if gone {
		kept = "what was deleted is there"
	}
	return map[string]any{"stored": []any{kept, nil, there, sum}, "keys": keys, "count": count}, err
}

type Text struct {
	Text string `json:"text" format:"email" description:"The text."`
}

func count(_ *toolgate.Call, args Text) (int, error) {
	if args.Text == "crash" {
		panic("it broke\nin two lines")
	}
	return len(strings.Fields(args.Text)) + 1, nil
}

// Each of the tools has this schema with another draft.
const draft = `{
	"$schema": "%s",
	"type": "object",
	"properties": {
		"count": {"$ref": "#/definitions/count", "maximum": 3},
		"pair": {"type": "array", "prefixItems": [{"type": "string"}]}
	},
	"definitions": {"count": {"type": "integer"}}
}`

type Drafted struct {
	Count int   `json:"count"`
	Pair  []any `json:"pair"`
}

type (
	Draft07   struct{ Drafted }
	Draft2019 struct{ Drafted }
	Draft2020 struct{ Drafted }
)

func (Draft07) JSONSchema() json.RawMessage {
	return json.RawMessage(fmt.Sprintf(draft, "http://json-schema.org/draft-07/schema#"))
}

func (Draft2019) JSONSchema() json.RawMessage {
	return json.RawMessage(fmt.Sprintf(draft, "https://json-schema.org/draft/2019-09/schema"))
}

func (Draft2020) JSONSchema() json.RawMessage {
	return json.RawMessage(fmt.Sprintf(draft, "https://json-schema.org/draft/2020-12/schema"))
}

func accept[T any](*toolgate.Call, T) (bool, error) { return true, nil }

func init() {
	toolgate.Register(
		toolgate.Server("work", "Takes steps until it is asked to stop, and gives the number of those that it took.", work,
			toolgate.Streaming()),
		toolgate.Server("stopped", "Gives the number of calls that were asked to stop and did.", stopped, toolgate.ReadOnly()),
		toolgate.Server("reach", "Reaches for everything, and says what came of it.", reach),
		toolgate.Server("hello_count", "Counts the words of a text, and one more.", count, toolgate.ReadOnly()),
		toolgate.Server("draft_07", "Accepts what its draft accepts.", accept[Draft07]),
		toolgate.Server("draft_2019_09", "Accepts what its draft accepts.", accept[Draft2019]),
		toolgate.Server("draft_2020_12", "Accepts what its draft accepts.", accept[Draft2020]),
	)
}

func main() {}
