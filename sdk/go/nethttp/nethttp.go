// Package nethttp lets net/http send requests through the host. It offers package toolgate/httpclient to libraries that need
// net/http, which makes a component about 8 MB larger. Use httpclient if you can.
//
// Importing it makes [http.DefaultTransport] use the host. So [http.Get] uses the host, and every library without a transport of
// its own:
//
//	import _ "toolgate/nethttp"
//
// A guest has one thread and waits in the host. So the client's Timeout and the cancellation of a request's context take effect only
// before a request is sent. The host has deadlines of its own. It also decides about proxies, connections and HTTP versions.
package nethttp

import (
	"bytes"
	"io"
	"net/http"
	"strconv"

	"toolgate/httpclient"
)

// Transport sends requests through the host, or to the handler of a test.
type Transport struct{}

func init() {
	http.DefaultTransport = Transport{}
}

// RoundTrip sends one request and reads the whole answer.
//
// It fails as [httpclient.Do], or if the body of the request cannot be read, or if its context has ended.
func (Transport) RoundTrip(request *http.Request) (*http.Response, error) {
	outgoing := httpclient.Request{Method: request.Method, URL: request.URL.String()}
	if request.Body != nil {
		body, err := io.ReadAll(request.Body)
		request.Body.Close()
		if err != nil {
			return nil, err
		}
		outgoing.Body = body
	}
	if err := request.Context().Err(); err != nil {
		return nil, err
	}
	for name, values := range request.Header {
		for _, value := range values {
			outgoing.Header = append(outgoing.Header, httpclient.Field{Name: name, Value: value})
		}
	}
	answer, err := httpclient.Do(outgoing)
	if err != nil {
		return nil, err
	}
	header := http.Header{}
	for _, field := range answer.Header {
		header.Add(field.Name, field.Value)
	}
	return &http.Response{
		Status: strconv.Itoa(answer.Status) + " " + http.StatusText(answer.Status), StatusCode: answer.Status,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Header: header, Request: request,
		Body: io.NopCloser(bytes.NewReader(answer.Body)), ContentLength: int64(len(answer.Body)),
	}, nil
}

// Check returns nil for a status of success (2xx).
//
// It fails as [httpclient.Response.Check].
func Check(response *http.Response) error {
	return (&httpclient.Response{Status: response.StatusCode}).Check()
}
