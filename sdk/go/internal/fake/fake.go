//go:build !wasip1

// Package fake is what stands in for the host's capabilities in a native test. Package toolgatetest sets it for one call.
package fake

import (
	"net/http"
	"sync"
)

// World is what one call finds outside.
type World struct {
	Config map[string]string
	Store  *Store
	// HTTP answers the requests that the tool sends; nil denies them.
	HTTP http.Handler
}

var (
	turn    sync.Mutex
	current = World{Store: &Store{}}
)

// During makes the world the current one while call runs. Calls of tests that run in parallel wait for each other.
func During(world World, call func()) {
	turn.Lock()
	defer turn.Unlock()
	before := current
	if world.Store == nil {
		world.Store = &Store{}
	}
	current = world
	defer func() { current = before }()
	call()
}

// Current gives the world of the call that runs.
func Current() World { return current }

// Store is a key-value store in memory.
type Store struct {
	mutex    sync.Mutex
	values   map[string][]byte
	versions map[string]uint64
}

// Get gives a copy of the value under a key, and the version of the key.
func (s *Store) Get(key string) (value []byte, version uint64, ok bool) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	value, ok = s.values[key]
	return append([]byte(nil), value...), s.versions[key], ok
}

// Set puts a value under a key; nil removes it.
func (s *Store) Set(key string, value []byte) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.put(key, value)
}

// Swap puts a value under a key if its version is still the one given.
func (s *Store) Swap(key string, version uint64, value []byte) bool {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if s.versions[key] != version {
		return false
	}
	s.put(key, value)
	return true
}

func (s *Store) put(key string, value []byte) {
	if s.values == nil {
		s.values, s.versions = map[string][]byte{}, map[string]uint64{}
	}
	s.versions[key]++
	if value == nil {
		delete(s.values, key)
	} else {
		s.values[key] = append([]byte{}, value...)
	}
}

// Keys lists the keys, in no order.
func (s *Store) Keys() []string {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	keys := make([]string, 0, len(s.values))
	for key := range s.values {
		keys = append(keys, key)
	}
	return keys
}
