// Package httpclient sends requests through the host: wasi:http, to what the operator allows.
//
// The host decides what may be reached, adds an Idempotency-Key to requests that change something, and puts a secret in the
// place of the placeholder that toolgate/config gives for it. Redirects are not followed: a 3xx is an answer like any other.
//
// A library that wants an http.Client of net/http gets one from package toolgate/nethttp, which makes the component about
// 8 MB larger.
package httpclient

import (
	"encoding/json"
	"errors"
	"net/url"
	"strings"

	"toolgate"
)

// ErrDenied says that the host does not allow the request.
var ErrDenied = errors.New("the host does not allow the request: it is outside of what was granted; the call's log says what is missing")

// Field is one header field.
type Field struct{ Name, Value string }

// Request is a request.
type Request struct {
	// Method is GET where it is empty.
	Method string
	// URL is the whole URL, its query included.
	URL string
	// Header has the header fields, in order.
	Header []Field
	// Body is the body, or nil.
	Body []byte
}

// Response is an answer.
type Response struct {
	Status int
	// Header has the header fields, in order, with names in lower case.
	Header []Field
	Body   []byte
}

// Get sends a GET request and reads the whole answer, whatever its status.
func Get(url string) (*Response, error) { return Do(Request{URL: url}) }

// PostJSON sends a POST request with a value as its body of JSON.
func PostJSON(url string, value any) (*Response, error) {
	body, err := json.Marshal(value)
	if err != nil {
		return nil, toolgate.Failed("the request cannot be sent: %w", err)
	}
	return Do(Request{Method: "POST", URL: url, Header: []Field{{"content-type", "application/json"}}, Body: body})
}

// Do sends a request and reads the whole answer, whatever its status. An error is a failure of its kind: unavailable where
// trying again may help.
func Do(request Request) (*Response, error) {
	target, err := url.Parse(request.URL)
	if err != nil {
		// The error of url.Parse repeats the URL, which may hold what is nobody's business.
		return nil, toolgate.Failed("the request cannot be sent: its URL cannot be read")
	}
	if target.User != nil {
		return nil, toolgate.Failed("the request cannot be sent: put a name and password into the header Authorization")
	}
	if request.Method == "" {
		request.Method = "GET"
	}
	return send(request, target)
}

// Get gives the first value of a header field, or an empty string.
func (r *Response) Get(name string) string {
	for _, field := range r.Header {
		if strings.EqualFold(field.Name, name) {
			return field.Value
		}
	}
	return ""
}

// Check gives nil if the status says that the request succeeded (2xx), and otherwise a failure that says which status it
// was: unavailable where trying again may help (429 and 5xx).
func (r *Response) Check() error {
	switch {
	case r.Status >= 200 && r.Status < 300:
		return nil
	case r.Status == 429 || r.Status >= 500:
		return toolgate.Unavailable("the server answered with status %d", r.Status)
	default:
		return toolgate.Failed("the server answered with status %d", r.Status)
	}
}

// JSON reads the body of an answer that succeeded as JSON.
func (r *Response) JSON(into any) error {
	if err := r.Check(); err != nil {
		return err
	}
	if err := json.Unmarshal(r.Body, into); err != nil {
		return toolgate.Failed("the server's answer is not what was expected: %w", err)
	}
	return nil
}
