package httpclient

import (
	"net/url"
	"strconv"
	"strings"

	"toolgate"
	"toolgate/internal/bindings/wasi_http_outgoing_handler"
	wasi "toolgate/internal/bindings/wasi_http_types"
	"toolgate/internal/bindings/wasi_io_streams"
	types "toolgate/internal/wit/types"
)

// piece is the size of one read or write.
const piece = 4 << 10

func send(request Request, target *url.URL) (*Response, error) {
	outgoing, err := outgoing(request, target)
	if err != nil {
		return nil, err
	}
	var body *wasi.OutgoingBody
	if len(request.Body) > 0 {
		result := outgoing.Body()
		if result.IsErr() {
			return nil, toolgate.Failed("the request cannot be sent: the host allows no body")
		}
		body = result.Ok()
	}
	handled := wasi_http_outgoing_handler.Handle(outgoing, types.None[*wasi.RequestOptions]())
	if handled.IsErr() {
		return nil, refused(handled.Err())
	}
	pending := handled.Ok()
	defer pending.Drop()
	if body != nil {
		// A server may answer before it has read everything. Its response says more than an error of the write.
		write(body, request.Body)
		wasi.OutgoingBodyFinish(body, types.None[*wasi.Fields]())
	}
	answer, err := wait(pending)
	if err != nil {
		return nil, err
	}
	return read(answer)
}

func outgoing(request Request, target *url.URL) (*wasi.OutgoingRequest, error) {
	fields := wasi.MakeFields()
	if len(request.Body) > 0 {
		// Without its length a body is sent in chunks, which some servers do not accept.
		fields.Append("content-length", []byte(strconv.Itoa(len(request.Body))))
	}
	for _, field := range request.Header {
		if strings.EqualFold(field.Name, "content-length") {
			continue
		}
		if fields.Append(field.Name, []byte(field.Value)).IsErr() {
			return nil, toolgate.Failed("the request cannot be sent: the header %s is invalid", field.Name)
		}
	}
	outgoing := wasi.MakeOutgoingRequest(fields)
	problem := ""
	switch {
	case outgoing.SetMethod(methodOf(request.Method)).IsErr():
		problem = "method"
	case outgoing.SetScheme(types.Some(schemeOf(target.Scheme))).IsErr():
		problem = "scheme"
	case outgoing.SetAuthority(types.Some(target.Host)).IsErr():
		problem = "host"
	case outgoing.SetPathWithQuery(types.Some(target.RequestURI())).IsErr():
		problem = "path"
	}
	if problem != "" {
		return nil, toolgate.Failed("the request cannot be sent: its %s is invalid", problem)
	}
	return outgoing, nil
}

func methodOf(name string) wasi.Method {
	switch name {
	case "GET":
		return wasi.MakeMethodGet()
	case "HEAD":
		return wasi.MakeMethodHead()
	case "POST":
		return wasi.MakeMethodPost()
	case "PUT":
		return wasi.MakeMethodPut()
	case "DELETE":
		return wasi.MakeMethodDelete()
	case "PATCH":
		return wasi.MakeMethodPatch()
	case "OPTIONS":
		return wasi.MakeMethodOptions()
	case "TRACE":
		return wasi.MakeMethodTrace()
	case "CONNECT":
		return wasi.MakeMethodConnect()
	default:
		return wasi.MakeMethodOther(name)
	}
}

func schemeOf(name string) wasi.Scheme {
	switch name {
	case "http":
		return wasi.MakeSchemeHttp()
	case "https":
		return wasi.MakeSchemeHttps()
	default:
		return wasi.MakeSchemeOther(name)
	}
}

func write(body *wasi.OutgoingBody, content []byte) {
	result := body.Write()
	if result.IsErr() {
		return
	}
	stream := result.Ok()
	defer stream.Drop()
	for len(content) > 0 {
		next := content[:min(piece, len(content))]
		content = content[len(next):]
		if stream.BlockingWriteAndFlush(next).IsErr() {
			return
		}
	}
}

func wait(pending *wasi.FutureIncomingResponse) (*wasi.IncomingResponse, error) {
	ready := pending.Subscribe()
	ready.Block()
	ready.Drop()
	if got := pending.Get(); got.IsSome() && got.Some().IsOk() {
		answer := got.Some().Ok()
		if answer.IsErr() {
			return nil, refused(answer.Err())
		}
		return answer.Ok(), nil
	}
	return nil, toolgate.Unavailable("the request got no response")
}

func read(answer *wasi.IncomingResponse) (*Response, error) {
	defer answer.Drop()
	response := &Response{Status: int(answer.Status())}
	fields := answer.Headers()
	for _, entry := range fields.Entries() {
		response.Header = append(response.Header, Field{strings.ToLower(entry.F0), string(entry.F1)})
	}
	fields.Drop()
	consumed := answer.Consume()
	if consumed.IsErr() {
		return nil, toolgate.Unavailable("the response broke off: it has no body")
	}
	body := consumed.Ok()
	content, err := drain(body)
	wasi.IncomingBodyFinish(body).Drop()
	response.Body = content
	return response, err
}

func drain(body *wasi.IncomingBody) ([]byte, error) {
	opened := body.Stream()
	if opened.IsErr() {
		return nil, toolgate.Unavailable("the response broke off: its body cannot be read")
	}
	stream := opened.Ok()
	defer stream.Drop()
	var content []byte
	for {
		result := stream.BlockingRead(piece)
		if result.IsOk() {
			content = append(content, result.Ok()...)
			continue
		}
		if problem := result.Err(); problem.Tag() == wasi_io_streams.StreamErrorLastOperationFailed {
			cause := problem.LastOperationFailed()
			defer cause.Drop()
			return nil, toolgate.Unavailable("the response broke off: %s", cause.ToDebugString())
		}
		return content, nil
	}
}

func refused(code wasi.ErrorCode) error {
	switch code.Tag() {
	case wasi.ErrorCodeHttpRequestDenied, wasi.ErrorCodeDestinationIpProhibited:
		return toolgate.Failed("%w", ErrDenied)
	case wasi.ErrorCodeHttpRequestUriInvalid, wasi.ErrorCodeHttpRequestMethodInvalid:
		return toolgate.Failed("the request cannot be sent: its URL or method is invalid")
	case wasi.ErrorCodeDnsTimeout, wasi.ErrorCodeConnectionTimeout, wasi.ErrorCodeConnectionReadTimeout,
		wasi.ErrorCodeConnectionWriteTimeout, wasi.ErrorCodeHttpResponseTimeout:
		return toolgate.Unavailable("the request got no response in time")
	default:
		return toolgate.Unavailable("the request got no response: error %d of wasi:http", code.Tag())
	}
}
