package toolgate

import (
	"errors"
	"fmt"
	"strings"

	"toolgate/internal/host"
)

// Kind says what a failure means to whoever called.
type Kind uint8

const (
	// KindInvalidArguments: the arguments fit the schema and still make no sense.
	KindInvalidArguments = Kind(host.InvalidArguments)
	// KindFailed: it was tried and did not work; trying again in the same way will not help.
	KindFailed = Kind(host.Failed)
	// KindUnavailable: what the tool needs cannot be reached now; trying again later may help.
	KindUnavailable = Kind(host.Unavailable)
)

// String gives the interface's word for the kind.
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

// Failure is an error that says which kind of failure it is. Every other error that a tool returns counts as KindFailed.
type Failure struct {
	Kind Kind
	err  error
}

// Error gives the message, which is for the model: what was wrong, and what it could do instead.
func (f *Failure) Error() string { return f.err.Error() }

// Unwrap gives the error behind it, if there is one.
func (f *Failure) Unwrap() error { return errors.Unwrap(f.err) }

// InvalidArguments says that the arguments fit the schema and still make no sense. Like [fmt.Errorf], with %w too.
func InvalidArguments(format string, args ...any) error {
	return &Failure{KindInvalidArguments, fmt.Errorf(format, args...)}
}

// Failed says that it was tried and did not work. Any error that is no [Failure] means the same.
func Failed(format string, args ...any) error {
	return &Failure{KindFailed, fmt.Errorf(format, args...)}
}

// Unavailable says that what the tool needs cannot be reached now, and that trying again later may help.
func Unavailable(format string, args ...any) error {
	return &Failure{KindUnavailable, fmt.Errorf(format, args...)}
}

// failureOf gives the kind of the failure that err wraps, with the whole message of err.
func failureOf(err error) *host.Failure {
	kind := KindFailed
	var failure *Failure
	if errors.As(err, &failure) {
		kind = failure.Kind
	}
	return &host.Failure{Kind: uint8(kind), Message: valid(err.Error())}
}

// valid replaces what is no UTF-8: the host ends a call that hands it such text.
func valid(text string) string {
	return strings.ToValidUTF8(text, "\uFFFD")
}
