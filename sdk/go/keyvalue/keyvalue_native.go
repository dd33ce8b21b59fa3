//go:build !wasip1

package keyvalue

import (
	"strconv"

	"toolgate"
	"toolgate/internal/fake"
)

type memory struct{ store *fake.Store }

func open(string) (bucket, error) { return memory{fake.Current().Store}, nil }

func (m memory) get(key string) ([]byte, bool, error) {
	value, _, ok := m.store.Get(key)
	return value, ok, nil
}

func (m memory) set(key string, value []byte) error {
	m.store.Set(key, append([]byte{}, value...))
	return nil
}

func (m memory) delete(key string) error {
	m.store.Set(key, nil)
	return nil
}

func (m memory) increment(key string, by int64) (int64, error) {
	for {
		value, version, ok := m.store.Get(key)
		sum := int64(0)
		if ok {
			number, err := strconv.ParseInt(string(value), 10, 64)
			if err != nil {
				return 0, toolgate.Unavailable("the key-value store cannot be used now: the value of `%s` is not a number", key)
			}
			sum = number
		}
		sum += by
		if m.store.Swap(key, version, strconv.AppendInt(nil, sum, 10)) {
			return sum, nil
		}
	}
}

func (m memory) list(*string) ([]string, *string, error) { return m.store.Keys(), nil, nil }

func (m memory) cas(key string) (cas, error) {
	value, version, ok := m.store.Get(key)
	return &memoryCas{m.store, key, value, version, ok}, nil
}

type memoryCas struct {
	store   *fake.Store
	key     string
	value   []byte
	version uint64
	ok      bool
}

func (c *memoryCas) current() ([]byte, bool, error) { return c.value, c.ok, nil }

func (c *memoryCas) swap(value []byte) (cas, error) {
	if c.store.Swap(c.key, c.version, value) {
		return nil, nil
	}
	return memory{c.store}.cas(c.key)
}

func (c *memoryCas) drop() {}
