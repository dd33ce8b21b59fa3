// Package keyvalue keeps what shall outlast a call: wasi:keyvalue of the host, or a store in memory in a test.
//
// Each plugin has one bucket of its own. Calls run in instances of their own and at the same time, and a host may be killed
// between any two writes; [Update] is the one way to change a value that others change too, and a tool that needs several
// writes finds out from what is stored how far an earlier attempt came.
package keyvalue

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"toolgate"
)

// So many swaps in a row that others won mean that something is wrong, not that the key is popular: each lost one is
// another call's progress.
const maxSwaps = 1000

// What the host may answer, to be asked for with errors.Is. Each comes wrapped in a failure of its kind.
var (
	ErrNoSuchStore  = errors.New("the host has no such key-value bucket")
	ErrAccessDenied = errors.New("the key-value bucket may not be used by this plugin")
)

// Bucket is the plugin's key-value pairs.
type Bucket struct{ bucket bucket }

// Open gives the plugin's own bucket. A component that uses it imports wasi:keyvalue, which its operator grants.
func Open() (*Bucket, error) {
	inner, err := open("default")
	if err != nil {
		return nil, err
	}
	return &Bucket{inner}, nil
}

// Get gives the value under a key, and whether there is one.
func (b *Bucket) Get(key string) (value []byte, ok bool, err error) { return b.bucket.get(key) }

// Set puts a value under a key, over whatever was there. Where several calls may write one key, use [Update].
func (b *Bucket) Set(key string, value []byte) error { return b.bucket.set(key, value) }

// Delete removes a key; one that is not there is fine.
func (b *Bucket) Delete(key string) error { return b.bucket.delete(key) }

// Increment adds to the number under a key, which counts as 0 when it is not there, and gives the sum. One step: no call
// gets between. But a call that is dispatched again adds again, so this is for numbers that need not be exact.
func (b *Bucket) Increment(key string, by int64) (int64, error) { return b.bucket.increment(key, by) }

// Keys lists the keys that begin with a prefix, in order. It reads every key of the bucket: for tools that look at
// everything anyway.
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

// Read gives the value under a key, read as JSON, and whether there is one.
func Read[T any](b *Bucket, key string) (value T, ok bool, err error) {
	text, ok, err := b.Get(key)
	if err != nil || !ok {
		return value, ok, err
	}
	return value, true, decode(key, text, &value)
}

// Write puts a value under a key, as JSON.
func Write[T any](b *Bucket, key string, value T) error {
	text, err := json.Marshal(value)
	if err != nil {
		return toolgate.Failed("`%s`: %w", key, err)
	}
	return b.Set(key, text)
}

// Update changes the value under a key by compare-and-swap: it reads it (the zero T when there is none), lets step change
// it, and writes it only if nobody else wrote meanwhile; otherwise it starts again with what they wrote. So step may run
// several times and should do nothing else. What it leaves unchanged is not written, and nothing is when it fails.
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

// bucket is what a host, or a test, has to offer.
type bucket interface {
	get(key string) ([]byte, bool, error)
	set(key string, value []byte) error
	delete(key string) error
	increment(key string, by int64) (int64, error)
	list(cursor *string) (keys []string, next *string, err error)
	cas(key string) (cas, error)
}

// cas is a look at one key, and the right to write it if nobody else did meanwhile.
type cas interface {
	current() ([]byte, bool, error)
	// swap writes; where somebody else was faster it gives a new look.
	swap(value []byte) (cas, error)
	// drop gives it up. What was swapped is given up already.
	drop()
}
