// A durable tool. In each round it counts, draws a random number, reads the clock, sends two requests, waits and sleeps. Each kind
// of wait has its turn. A kill of the host changes none of its results.
package main

import (
	"crypto/rand"
	"fmt"
	"time"

	"toolgate"
	"toolgate/durable"
	"toolgate/httpclient"
	"toolgate/keyvalue"
)

type Work struct {
	Key    string `json:"key"`
	Rounds int    `json:"rounds"`
	URL    string `json:"url"`
}

type Given struct {
	Word string `json:"word"`
}

type Round struct {
	Count int64  `json:"count"`
	Sent  string `json:"sent"`
	Given any    `json:"given"`
}

func work(_ *toolgate.Call, args Work) ([]Round, error) {
	rounds := []Round{}
	for number := range args.Rounds {
		bucket, err := keyvalue.Open()
		if err != nil {
			return nil, err
		}
		count, err := bucket.Increment(args.Key, 1)
		if err != nil {
			return nil, err
		}
		drawn, now := rand.Text(), time.Now().UnixNano()
		read, err := httpclient.Do(httpclient.Request{Method: "GET", URL: args.URL})
		if err != nil {
			return nil, err
		}
		body := fmt.Sprintf("%s %d %d %s %d %s", args.Key, number, count, drawn, now, read.Body)
		answer, err := httpclient.Do(httpclient.Request{Method: "POST", URL: args.URL, Body: []byte(body)})
		if err != nil {
			return nil, err
		}
		given, err := wait(number, args)
		if err != nil {
			return nil, err
		}
		time.Sleep(time.Second)
		rounds = append(rounds, Round{count, string(answer.Body), given})
	}
	return rounds, nil
}

func wait(number int, args Work) (any, error) {
	prompt := fmt.Sprintf("%s %d", args.Key, number)
	switch number % 4 {
	case 0:
		given, err := durable.Ask[Given](durable.Question{Prompt: prompt})
		return given.Word, err
	case 1:
		given, err := durable.Approve(durable.Question{Prompt: prompt}, Given{"go on with " + prompt})
		return given.Word, err
	case 2:
		given, err := durable.AwaitExternal[Given](durable.External{Prompt: prompt})
		return given.Word, err
	}
	ends, err := durable.CallTools(durable.ToolCall{Tool: "work_go", Arguments: Work{args.Key + "+", 1, args.URL}})
	if err != nil {
		return nil, err
	}
	return ends[0].Result, ends[0].Err
}

func init() {
	toolgate.Register(
		toolgate.Server("work_go", "Counts, draws, sends, waits and sleeps in each round.", work, toolgate.Durable()),
	)
}

func main() {}
