package toolgate

import (
	"errors"
	"fmt"
	"strings"

	"toolgate/internal/host"
)

// Kind is the kind of a failure.
type Kind uint8

const (
	// KindInvalidArguments means that the arguments fit the schema and make no sense.
	KindInvalidArguments = Kind(host.InvalidArguments)
	// KindFailed means that the attempt failed and another one will fail too.
	KindFailed = Kind(host.Failed)
	// KindUnavailable means that the tool needs something that is unavailable now. A later attempt may succeed.
	KindUnavailable = Kind(host.Unavailable)
)

// String returns the name in the interface.
func (k Kind) String() string {
	switch k {
	case KindInvalidArguments:
		return "invalid-arguments"
	case KindUnavailable:
		return "unavailable"
	default:
		return "failed"
	}
}

// Failure is an error with a kind. Every other error that a tool returns counts as KindFailed.
type Failure struct {
	// Kind says whether another attempt may succeed.
	Kind Kind
	err  error
}

// Error returns the message, which is for the model: the problem, and what the model can do instead.
func (f *Failure) Error() string { return f.err.Error() }

// Unwrap returns the wrapped error, if there is one.
func (f *Failure) Unwrap() error { return errors.Unwrap(f.err) }

// InvalidArguments makes an error of [KindInvalidArguments]. The format is that of [fmt.Errorf], including %w.
func InvalidArguments(format string, args ...any) error {
	return &Failure{KindInvalidArguments, fmt.Errorf(format, args...)}
}

// Failed makes an error of [KindFailed]. An error that is not a [Failure] means the same.
func Failed(format string, args ...any) error {
	return &Failure{KindFailed, fmt.Errorf(format, args...)}
}

// Unavailable makes an error of [KindUnavailable].
func Unavailable(format string, args ...any) error {
	return &Failure{KindUnavailable, fmt.Errorf(format, args...)}
}

// failureOf returns the kind of the failure that err wraps, with the whole message of err.
func failureOf(err error) *host.Failure {
	kind := KindFailed
	var failure *Failure
	if errors.As(err, &failure) {
		kind = failure.Kind
	}
	return &host.Failure{Kind: uint8(kind), Message: valid(err.Error())}
}

// valid replaces bytes that are not UTF-8. The host ends a call that sends such text.
func valid(text string) string {
	return strings.ToValidUTF8(text, "\uFFFD")
}
