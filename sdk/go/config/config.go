// Package config reads what the operator configured for this plugin. The value of a secret is a placeholder, in the place
// of which the host sends the secret; see package toolgate/httpclient.
package config

import "toolgate"

// Get gives the value of a name, and whether there is one. A component that uses this imports wasi:config, which its
// operator grants.
func Get(name string) (value string, ok bool, err error) {
	return get(name)
}

// Require gives the value of a name, and an error that says what to configure where there is none.
func Require(name string) (string, error) {
	value, ok, err := get(name)
	if err == nil && !ok {
		err = toolgate.Failed("the operator of this host has not configured %q for this plugin", name)
	}
	return value, err
}
