// Package nethttp lets net/http send requests through the host. It is package toolgate/httpclient in the form that libraries
// want; net/http makes a component about 8 MB larger, so use httpclient where that will do.
//
// Importing it makes [http.DefaultTransport], and with it [http.Get] and every library that does not bring its own
// transport, use the host:
//
//	import _ "toolgate/nethttp"
//
// A guest has one thread and waits in the host: a Timeout of the client and the cancellation of a request's context are
// looked at before a request is sent, and not while it waits. The host has deadlines of its own. Proxies, connections and
// HTTP versions are the host's business, too.
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

// Check gives nil for an answer that says that the request succeeded (2xx), and otherwise a failure that says which status
// it was.
func Check(response *http.Response) error {
	return (&httpclient.Response{Status: response.StatusCode}).Check()
}
