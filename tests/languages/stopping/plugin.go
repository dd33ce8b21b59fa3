// A tool that works in steps until it is asked to stop, and one that counts the calls that were.
package main

import (
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
			_, err := count(1)
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
	return count(0)
}

func count(by int64) (int64, error) {
	bucket, err := keyvalue.Open()
	if err != nil {
		return 0, err
	}
	return bucket.Increment("stopped", by)
}

func init() {
	toolgate.Register(
		toolgate.Server("work", "Takes steps until it is asked to stop, and gives the number of those that it took.", work,
			toolgate.Streaming()),
		toolgate.Server("stopped", "Gives the number of calls that were asked to stop and did.", stopped, toolgate.ReadOnly()),
	)
}

func main() {}
