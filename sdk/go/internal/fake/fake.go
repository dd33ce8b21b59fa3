//go:build !wasip1

// Package fake replaces the host's capabilities in a native test. Package toolgatetest sets it for one call.
package fake

import (
	"net/http"
	"sync"
)

// World holds the capabilities of one call.
type World struct {
	Config map[string]string
	Store  *Store
	// HTTP answers the tool's requests; nil denies them.
	HTTP http.Handler
	// Waits are the waits of a durable tool.
	Waits *Waits
}

var (
	turn    sync.Mutex
	current = World{Store: &Store{}, Waits: &Waits{}}
)

// During makes the world the current one while call runs. Calls of parallel tests wait for each other.
func During(world World, call func()) {
	turn.Lock()
	defer turn.Unlock()
	before := current
	if world.Store == nil {
		world.Store = &Store{}
	}
	if world.Waits == nil {
		world.Waits = &Waits{}
	}
	current = world
	defer func() { current = before }()
	call()
}

// Current returns the world of the running call.
func Current() World { return current }

// Store is a key-value store in memory.
type Store struct {
	mutex    sync.Mutex
	values   map[string][]byte
	versions map[string]uint64
}

// Get returns a copy of the value of a key, and the key's version.
func (s *Store) Get(key string) (value []byte, version uint64, ok bool) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	value, ok = s.values[key]
	return append([]byte(nil), value...), s.versions[key], ok
}

// Set writes the value of a key; nil removes it.
func (s *Store) Set(key string, value []byte) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.put(key, value)
}

// Swap writes the value of a key if the version has not changed.
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
