// A durable tool that counts, draws a random number, sends a request, asks and sleeps in each round. A kill of the host changes
// none of its results.
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
	Given string `json:"given"`
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
		body := fmt.Sprintf("%s %d %d %s", args.Key, number, count, rand.Text())
		answer, err := httpclient.Do(httpclient.Request{Method: "POST", URL: args.URL, Body: []byte(body)})
		if err != nil {
			return nil, err
		}
		given, err := durable.Ask[Given](durable.Question{Prompt: fmt.Sprintf("%s %d", args.Key, number)})
		if err != nil {
			return nil, err
		}
		time.Sleep(time.Second)
		rounds = append(rounds, Round{count, string(answer.Body), given.Word})
	}
	return rounds, nil
}

func init() {
	toolgate.Register(
		toolgate.Server("work_go", "Counts, draws, sends, asks and sleeps in each round.", work, toolgate.Durable()),
	)
}

func main() {}
