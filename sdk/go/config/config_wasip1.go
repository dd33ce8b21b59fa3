package config

import (
	"toolgate"
	store "toolgate/internal/bindings/wasi_config_store"
)

func get(name string) (string, bool, error) {
	result := store.Get(name)
	if result.IsErr() {
		problem := result.Err()
		why := ""
		if problem.Tag() == store.ErrorUpstream {
			why = problem.Upstream()
		} else {
			why = problem.Io()
		}
		return "", false, toolgate.Unavailable("the configuration cannot be read now: %s", why)
	}
	if found := result.Ok(); found.IsSome() {
		return found.Some(), true, nil
	}
	return "", false, nil
}
