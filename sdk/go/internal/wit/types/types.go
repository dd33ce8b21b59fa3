// Package wit_types has the WIT types that Go lacks. The generated bindings use it, and give it its name.
package wit_types

// The tags that the generated bindings read.
const (
	OptionNone = 0
	OptionSome = 1
	ResultOk   = 0
	ResultErr  = 1
)

// Unit is the type of a result that says nothing.
type Unit struct{}

// Tuple2 is a pair.
type Tuple2[A, B any] struct {
	F0 A
	F1 B
}

// Option is a value that may be absent.
type Option[T any] struct {
	value  T
	exists bool
}

// Some is a value that is there.
func Some[T any](value T) Option[T] { return Option[T]{value, true} }

// None is a value that is absent.
func None[T any]() Option[T] { return Option[T]{} }

func (o Option[T]) IsSome() bool { return o.exists }

// Some returns the value. It panics if the value is absent.
func (o Option[T]) Some() T {
	if !o.exists {
		panic("the option has no value")
	}
	return o.value
}

func (o Option[T]) Tag() uint8 {
	if o.exists {
		return OptionSome
	}
	return OptionNone
}

// Result is either a value or an error.
type Result[T, E any] struct {
	value  T
	err    E
	failed bool
}

// Ok is a result with a value.
func Ok[T, E any](value T) Result[T, E] { return Result[T, E]{value: value} }

// Err is a result with an error.
func Err[T, E any](err E) Result[T, E] { return Result[T, E]{err: err, failed: true} }

func (r Result[T, E]) IsOk() bool { return !r.failed }

func (r Result[T, E]) IsErr() bool { return r.failed }

// Ok returns the value. It panics if the result is an error.
func (r Result[T, E]) Ok() T {
	if r.failed {
		panic("the result is an error")
	}
	return r.value
}

// Err returns the error. It panics if the result is a value.
func (r Result[T, E]) Err() E {
	if !r.failed {
		panic("the result is a value")
	}
	return r.err
}

func (r Result[T, E]) Tag() uint8 {
	if r.failed {
		return ResultErr
	}
	return ResultOk
}
