// Package httpclient sends requests through wasi:http of the host, as far as the operator allows them.
//
// The host adds an Idempotency-Key to requests that change something, and replaces the placeholders of toolgate/config with secrets.
// It does not follow redirects: a 3xx is a response like any other.
//
// Package toolgate/nethttp is for libraries that need an http.Client of net/http. It makes the component about 8 MB larger.
package httpclient

import (
	"encoding/json"
	"errors"
	"net/url"
	"strings"

	"toolgate"
)

// ErrDenied means that the host does not allow the request. The call's log names the missing grant (toolgate logs).
var ErrDenied = errors.New("the host does not allow the request: no grant allows it; the call's log names the missing grant (toolgate logs)")

// Field is one header field.
type Field struct {
	// Name is the name, and Value the value.
	Name, Value string
}

// Request is a request.
type Request struct {
	// Method is GET if it is empty.
	Method string
	// URL is the whole URL, including its query.
	URL string
	// Header has the header fields, in order.
	Header []Field
	// Body is the body, or nil.
	Body []byte
}

// Response is a response.
type Response struct {
	// Status is the status.
	Status int
	// Header has the header fields, in order, with names in lower case.
	Header []Field
	// Body is the whole body.
	Body []byte
}

// Get sends a GET request and reads the whole response. A status of failure is not an error.
//
// It fails as [Do].
func Get(url string) (*Response, error) { return Do(Request{URL: url}) }

// PostJSON sends a POST request with a value as its JSON body.
//
// It fails with [toolgate.KindFailed] if the value has no JSON form. Otherwise it fails as [Do].
func PostJSON(url string, value any) (*Response, error) {
	body, err := json.Marshal(value)
	if err != nil {
		return nil, toolgate.Failed("the request cannot be sent: %w", err)
	}
	return Do(Request{Method: "POST", URL: url, Header: []Field{{"content-type", "application/json"}}, Body: body})
}

// Do sends a request and reads the whole response. A status of failure is not an error.
//
// It fails if there is no response: with [ErrDenied], or with [toolgate.KindFailed] if the request is invalid, or with
// [toolgate.KindUnavailable] if another attempt may succeed.
func Do(request Request) (*Response, error) {
	target, err := url.Parse(request.URL)
	if err != nil {
		// The error of url.Parse repeats the URL, which may contain private data.
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

// Get returns the first value of a header field, or an empty string.
func (r *Response) Get(name string) string {
	for _, field := range r.Header {
		if strings.EqualFold(field.Name, name) {
			return field.Value
		}
	}
	return ""
}

// Check returns nil for a status of success (2xx).
//
// It fails for every other status, with an error that names it: with [toolgate.KindUnavailable] if another attempt may succeed (429
// and 5xx), otherwise with [toolgate.KindFailed].
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

// JSON decodes the body of a successful response.
//
// It fails as [Response.Check], or with [toolgate.KindFailed] if the body is not JSON of this form.
func (r *Response) JSON(into any) error {
	if err := r.Check(); err != nil {
		return err
	}
	if err := json.Unmarshal(r.Body, into); err != nil {
		return toolgate.Failed("the server's answer is not what was expected: %w", err)
	}
	return nil
}
