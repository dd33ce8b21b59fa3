package durable

import (
	"time"

	bindings "toolgate/internal/bindings/toolgate_plugin_durable"
	types "toolgate/internal/wit/types"
)

func ask(question string) (string, error)           { return answer(bindings.Ask(question)) }
func approve(question string) (string, error)       { return answer(bindings.Approve(question)) }
func awaitExternal(question string) (string, error) { return answer(bindings.AwaitExternal(question)) }
func callTools(request string) (string, error)      { return answer(bindings.CallTools(request)) }

func sleep(duration time.Duration) { bindings.Sleep(uint64(duration.Milliseconds())) }

func answer(result types.Result[string, bindings.WaitError]) (string, error) {
	if result.IsOk() {
		return result.Ok(), nil
	}
	switch problem := result.Err(); problem.Tag() {
	case bindings.WaitErrorDenied:
		denied := &DeniedError{}
		if comment := problem.Denied(); comment.IsSome() {
			denied.Comment = comment.Some()
		}
		return "", denied
	case bindings.WaitErrorExpired:
		return "", ErrExpired
	case bindings.WaitErrorCancelled:
		return "", ErrCancelled
	default:
		return "", notGranted(problem.NotGranted())
	}
}
