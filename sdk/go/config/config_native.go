//go:build !wasip1

package config

import "toolgate/internal/fake"

func get(name string) (string, bool, error) {
	value, ok := fake.Current().Config[name]
	return value, ok, nil
}
