// Reads a key as often as its arguments say, and then asks a person.
package main

import (
	"toolgate"
	"toolgate/durable"
	"toolgate/keyvalue"
)

type Work struct {
	Reads int  `json:"reads"`
	Asks  bool `json:"asks"`
}

func work(_ *toolgate.Call, args Work) (bool, error) {
	bucket, err := keyvalue.Open()
	if err != nil {
		return false, err
	}
	for range args.Reads {
		if _, _, err := bucket.Get("n"); err != nil {
			return false, err
		}
	}
	return durable.Ask[bool](durable.Question{Prompt: "Go on?"})
}

func init() {
	toolgate.Register(toolgate.Server("work", "Works, and then asks.", work, toolgate.Durable()))
}

func main() {}
