//go:build !wasip1

package httpclient

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"net/url"
	"sort"
	"strings"

	"toolgate"
	"toolgate/internal/fake"
)

func send(request Request, target *url.URL) (*Response, error) {
	handler := fake.Current().HTTP
	if handler == nil {
		return nil, toolgate.Failed("%w", ErrDenied)
	}
	received, err := http.NewRequest(request.Method, target.String(), bytes.NewReader(request.Body))
	if err != nil {
		return nil, toolgate.Failed("the request cannot be sent: %w", err)
	}
	for _, field := range request.Header {
		received.Header.Add(field.Name, field.Value)
	}
	recorder := httptest.NewRecorder()
	handler.ServeHTTP(recorder, received)
	response := &Response{Status: recorder.Code, Body: recorder.Body.Bytes()}
	for name, values := range recorder.Result().Header {
		for _, value := range values {
			response.Header = append(response.Header, Field{strings.ToLower(name), value})
		}
	}
	sort.SliceStable(response.Header, func(i, j int) bool { return response.Header[i].Name < response.Header[j].Name })
	return response, nil
}
