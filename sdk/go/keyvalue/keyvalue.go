// Package keyvalue stores data that must outlast a call: in wasi:keyvalue of the host, or in memory in a test.
//
// Each plugin has one bucket of its own. Calls run at the same time, each in an instance of its own, and a host may be killed
// between any two writes. Use [Update] to change a value that other calls change too. A tool with several writes must find out
// from the stored data how far an earlier attempt came.
package keyvalue

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"toolgate"
)

// The limit on lost swaps in a row. Each lost swap is another call's progress, so a popular key alone does not reach it.
const maxSwaps = 1000

// Errors of the host, for errors.Is. A failure of the right kind wraps each of them.
var (
	// ErrNoSuchStore means that the host has no bucket for the plugin.
	ErrNoSuchStore = errors.New("the host has no such key-value bucket")
	// ErrAccessDenied means that the plugin may not use the bucket.
	ErrAccessDenied = errors.New("the key-value bucket may not be used by this plugin")
)

// Bucket holds the plugin's key-value pairs.
type Bucket struct{ bucket bucket }

// Open returns the plugin's own bucket. A component that uses it imports wasi:keyvalue, which the operator grants.
//
// It fails with [ErrNoSuchStore], with [ErrAccessDenied], or with [toolgate.KindUnavailable] if the store cannot be used now.
func Open() (*Bucket, error) {
	inner, err := open("default")
	if err != nil {
		return nil, err
	}
	return &Bucket{inner}, nil
}

// Get returns the value of a key, and whether there is one.
//
// It fails with [toolgate.KindUnavailable] if the store cannot be used now.
func (b *Bucket) Get(key string) (value []byte, ok bool, err error) { return b.bucket.get(key) }

// Set writes the value of a key. If several calls can write one key, use [Update].
//
// It fails with [toolgate.KindUnavailable] if the store cannot be used now.
func (b *Bucket) Set(key string, value []byte) error { return b.bucket.set(key, value) }

// Delete removes a key. A missing key is not an error.
//
// It fails with [toolgate.KindUnavailable] if the store cannot be used now.
func (b *Bucket) Delete(key string) error { return b.bucket.delete(key) }

// Increment adds to the number of a key in one atomic step, and returns the sum. A missing key counts as 0. A call that runs
// again after a crash adds again, so use this for numbers that need not be exact.
//
// It fails with [toolgate.KindUnavailable] if the store cannot be used now, or the value is not a number.
func (b *Bucket) Increment(key string, by int64) (int64, error) { return b.bucket.increment(key, by) }

// Keys lists the keys with a prefix, in order. It reads every key of the bucket.
//
// It fails with [toolgate.KindUnavailable] if the store cannot be used now.
func (b *Bucket) Keys(prefix string) ([]string, error) {
	keys := []string{}
	var cursor *string
	for {
		page, next, err := b.bucket.list(cursor)
		if err != nil {
			return nil, err
		}
		for _, key := range page {
			if strings.HasPrefix(key, prefix) {
				keys = append(keys, key)
			}
		}
		if next == nil {
			break
		}
		cursor = next
	}
	slices.Sort(keys)
	return slices.Compact(keys), nil
}

// Read returns the value of a key, decoded from JSON, and whether there is one.
//
// It fails as [Bucket.Get], or with [toolgate.KindFailed] if the value is not JSON for T.
func Read[T any](b *Bucket, key string) (value T, ok bool, err error) {
	text, ok, err := b.Get(key)
	if err != nil || !ok {
		return value, ok, err
	}
	return value, true, decode(key, text, &value)
}

// Write writes the value of a key as JSON.
//
// It fails as [Bucket.Set], or with [toolgate.KindFailed] if the value has no JSON form.
func Write[T any](b *Bucket, key string, value T) error {
	text, err := json.Marshal(value)
	if err != nil {
		return toolgate.Failed("`%s`: %w", key, err)
	}
	return b.Set(key, text)
}

// Update changes the value of a key by compare-and-swap. It reads the value (the zero T if the key is missing), calls step to
// change it, and writes it if no other call has written meanwhile. Otherwise it starts again with the new value. So step can run
// several times, and should have no other effect. Update writes nothing if step leaves the value unchanged or fails.
//
// It fails with the error of step. It fails with [toolgate.KindFailed] if a value has no JSON form or is not JSON for T, and with
// [toolgate.KindUnavailable] if the store cannot be used now or other calls change the key too often.
func Update[T any](b *Bucket, key string, step func(value *T) error) error {
	cas, err := b.bucket.cas(key)
	if err != nil {
		return err
	}
	defer func() { cas.drop() }()
	for range maxSwaps {
		before, ok, err := cas.current()
		if err != nil {
			return err
		}
		var value T
		if ok {
			if err := decode(key, before, &value); err != nil {
				return err
			}
		}
		if err := step(&value); err != nil {
			return err
		}
		after, err := json.Marshal(value)
		if err != nil {
			return toolgate.Failed("`%s`: %w", key, err)
		}
		if ok && bytes.Equal(before, after) {
			return nil
		}
		again, err := cas.swap(after)
		if err != nil || again == nil {
			return err
		}
		cas = again
	}
	return toolgate.Unavailable("`%s` is being changed by too many calls at once", key)
}

func decode(key string, text []byte, value any) error {
	if err := json.Unmarshal(text, value); err != nil {
		return toolgate.Failed("what is stored under `%s` cannot be read: %w", key, err)
	}
	return nil
}

// bucket is the bucket of a host or of a test.
type bucket interface {
	get(key string) ([]byte, bool, error)
	set(key string, value []byte) error
	delete(key string) error
	increment(key string, by int64) (int64, error)
	list(cursor *string) (keys []string, next *string, err error)
	cas(key string) (cas, error)
}

// cas is a compare-and-swap handle of one key.
type cas interface {
	current() ([]byte, bool, error)
	// swap writes the value. If another call was faster, it returns a new handle.
	swap(value []byte) (cas, error)
	// drop releases the handle. A swap releases it too.
	drop()
}
