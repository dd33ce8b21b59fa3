//go:build !wasip1

package durable

import (
	"time"

	"toolgate/internal/fake"
)

func ask(question string) (string, error)           { return wait("ask", question) }
func approve(question string) (string, error)       { return wait("approve", question) }
func awaitExternal(question string) (string, error) { return wait("await-external", question) }
func callTools(request string) (string, error)      { return wait("call-tools", request) }

func sleep(duration time.Duration) {
	fake.Current().Waits.Sleep(duration)
}

func wait(kind, question string) (string, error) {
	end := fake.Current().Waits.Next(kind, question)
	switch {
	case end.Denied:
		return "", &DeniedError{Comment: end.Comment}
	case end.Expired:
		return "", ErrExpired
	case end.NotGranted != "":
		return "", notGranted(end.NotGranted)
	default:
		return end.Answer, nil
	}
}
