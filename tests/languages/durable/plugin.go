// A durable tool. In each round it counts, draws a random number, reads the clock, sends two requests, then three in goroutines and
// one in a race with a timer, waits and sleeps. Each kind of wait has its turn. A kill of the host changes none of its results.
package main

import (
	"crypto/rand"
	"fmt"
	"strings"
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
	Count    int64    `json:"count"`
	Sent     string   `json:"sent"`
	Together []string `json:"together"`
	Raced    string   `json:"raced"`
	Given    any      `json:"given"`
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
		answer, err := post(args.URL, body)
		if err != nil {
			return nil, err
		}
		answers, err := together(args.URL, fmt.Sprintf("%s %d together", args.Key, number))
		if err != nil {
			return nil, err
		}
		first, err := raced(args.URL, fmt.Sprintf("%s %d raced after %s", args.Key, number, strings.Join(answers, ",")))
		if err != nil {
			return nil, err
		}
		given, err := wait(number, args)
		if err != nil {
			return nil, err
		}
		time.Sleep(time.Second)
		rounds = append(rounds, Round{count, answer, answers, first, given})
	}
	return rounds, nil
}

func post(url, body string) (string, error) {
	answer, err := httpclient.Do(httpclient.Request{Method: "POST", URL: url, Body: []byte(body)})
	if err != nil {
		return "", err
	}
	return string(answer.Body), nil
}

type answered struct {
	text string
	err  error
}

// send sends a request in a goroutine.
func send(url, body string, ended chan<- answered) {
	go func() {
		text, err := post(url, body)
		ended <- answered{text, err}
	}()
}

// together returns the answers to three requests, in the order in which they came.
func together(url, begin string) ([]string, error) {
	ended := make(chan answered)
	for _, name := range []string{"a", "b", "c"} {
		send(url, begin+" "+name, ended)
	}
	answers := []string{}
	for range 3 {
		each := <-ended
		if each.err != nil {
			return nil, each.err
		}
		answers = append(answers, each.text)
	}
	return answers, nil
}

func raced(url, body string) (string, error) {
	ended := make(chan answered, 1)
	send(url, body, ended)
	select {
	case first := <-ended:
		return first.text, first.err
	case <-time.After(time.Hour):
		return "late", nil
	}
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
