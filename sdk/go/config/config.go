// Package config reads the operator's configuration of this plugin. The value of a secret is a placeholder, which the host
// replaces when it sends a request; see package toolgate/httpclient.
package config

import "toolgate"

// Get returns the value of a name, and whether there is one. A component that uses this imports wasi:config, which the operator
// grants.
//
// It fails with [toolgate.KindUnavailable] if the host could not read the configuration.
func Get(name string) (value string, ok bool, err error) {
	return get(name)
}

// Require returns the value of a name, if the tool needs one.
//
// It fails with [toolgate.KindFailed] if the operator configured none. The error has the name. Otherwise it fails as [Get].
func Require(name string) (string, error) {
	value, ok, err := get(name)
	if err == nil && !ok {
		err = toolgate.Failed("the operator of this host has not configured %q for this plugin", name)
	}
	return value, err
}
