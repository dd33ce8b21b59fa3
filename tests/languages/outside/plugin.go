// A tool that works in steps until it is asked to stop, one that counts the calls that were,
// and the tool of the skeleton, whose result is greater by one.
package main

import (
	"strings"

	"toolgate"
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

type Text struct {
	Text string `json:"text" description:"The text."`
}

func count(_ *toolgate.Call, args Text) (int, error) {
	return len(strings.Fields(args.Text)) + 1, nil
}

func init() {
	toolgate.Register(
		toolgate.Server("work", "Takes steps until it is asked to stop, and gives the number of those that it took.", work,
			toolgate.Streaming()),
		toolgate.Server("stopped", "Gives the number of calls that were asked to stop and did.", stopped, toolgate.ReadOnly()),
		toolgate.Server("hello_count", "Counts the words of a text, and one more.", count, toolgate.ReadOnly()),
	)
}

func main() {}
