/* Requests of a component, over wasi:http. */
#ifdef __wasm__

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "tools.h"
#include "toolgate_host.h"

/* The size of one read or write. */
#define PIECE 4096

static tools_string_t text_of(const char *text, size_t len) {
    tg_text clean = tg_clean(text, len);
    return (tools_string_t){(uint8_t *)(uintptr_t)clean.ptr, clean.len};
}

static tg_host_answer answer(tg_host_status status, const char *why) {
    return (tg_host_answer){status, {why, strlen(why)}};
}

static tg_host_answer refused(const wasi_http_types_error_code_t *code) {
    char why[64];
    switch (code->tag) {
    case WASI_HTTP_TYPES_ERROR_CODE_HTTP_REQUEST_DENIED:
    case WASI_HTTP_TYPES_ERROR_CODE_DESTINATION_IP_PROHIBITED:
        return answer(TG_HOST_DENIED, "no grant allows it; the call's log names the missing grant (toolgate logs)");
    case WASI_HTTP_TYPES_ERROR_CODE_HTTP_REQUEST_URI_INVALID:
    case WASI_HTTP_TYPES_ERROR_CODE_HTTP_REQUEST_METHOD_INVALID:
        return answer(TG_HOST_INVALID, "its URL or method is invalid");
    default:
        snprintf(why, sizeof why, "it got no response (error %u of wasi:http)", (unsigned)code->tag);
        return (tg_host_answer){TG_HOST_UNREACHABLE, tg_copy(why, strlen(why))};
    }
}

static wasi_http_types_method_t method_of(const char *name) {
    static const char *const known[] = {"GET", "HEAD", "POST", "PUT", "DELETE", "CONNECT", "OPTIONS", "TRACE", "PATCH"};
    if (!name) return (wasi_http_types_method_t){.tag = WASI_HTTP_TYPES_METHOD_GET};
    for (uint8_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
        if (!strcmp(name, known[i])) return (wasi_http_types_method_t){.tag = i};
    wasi_http_types_method_t other = {.tag = WASI_HTTP_TYPES_METHOD_OTHER};
    other.val.other = text_of(name, strlen(name));
    return other;
}

static bool append(wasi_http_types_borrow_fields_t fields, const char *name, const char *value) {
    wasi_http_types_header_error_t error;
    tools_string_t key = text_of(name, strlen(name));
    wasi_http_types_field_value_t bytes = {(uint8_t *)(uintptr_t)value, strlen(value)};
    return wasi_http_types_method_fields_append(fields, &key, &bytes, &error);
}

static bool set_url(wasi_http_types_borrow_outgoing_request_t request, const char *url) {
    const char *rest = strstr(url, "://");
    if (!rest) return false;
    wasi_http_types_scheme_t scheme = {.tag = WASI_HTTP_TYPES_SCHEME_OTHER};
    size_t length = (size_t)(rest - url);
    if (length == 4 && !memcmp(url, "http", 4)) scheme.tag = WASI_HTTP_TYPES_SCHEME_HTTP;
    else if (length == 5 && !memcmp(url, "https", 5)) scheme.tag = WASI_HTTP_TYPES_SCHEME_HTTPS;
    else scheme.val.other = text_of(url, length);
    rest += 3;
    size_t end = strcspn(rest, "#"), host = strcspn(rest, "/?#");
    tools_string_t authority = text_of(rest, host);
    char *path = tg_alloc(end - host + 2);
    size_t slash = rest[host] != '/';
    path[0] = '/';
    memcpy(path + slash, rest + host, end - host);
    tools_string_t target = text_of(path, end - host + slash);
    return wasi_http_types_method_outgoing_request_set_scheme(request, &scheme) &&
           wasi_http_types_method_outgoing_request_set_authority(request, &authority) &&
           wasi_http_types_method_outgoing_request_set_path_with_query(request, &target);
}

/* A server may answer before it has read everything. Its response says more than an error of the write. */
static void write_body(wasi_http_types_own_outgoing_body_t body, tg_bytes bytes) {
    wasi_http_types_own_output_stream_t stream;
    wasi_http_types_error_code_t ignored;
    if (wasi_http_types_method_outgoing_body_write(wasi_http_types_borrow_outgoing_body(body), &stream)) {
        wasi_io_streams_borrow_output_stream_t borrowed = wasi_io_streams_borrow_output_stream(stream);
        for (size_t at = 0; at < bytes.len; at += PIECE) {
            wasi_io_streams_stream_error_t error;
            size_t size = bytes.len - at < PIECE ? bytes.len - at : PIECE;
            tools_list_u8_t piece = {(uint8_t *)(uintptr_t)bytes.ptr + at, size};
            if (!wasi_io_streams_method_output_stream_blocking_write_and_flush(borrowed, &piece, &error)) break;
        }
        wasi_io_streams_output_stream_drop_own(stream);
    }
    wasi_http_types_static_outgoing_body_finish(body, NULL, &ignored);
}

static bool read_body(wasi_http_types_own_incoming_response_t response, tg_bytes *body) {
    wasi_http_types_own_incoming_body_t own;
    wasi_http_types_own_input_stream_t stream;
    if (!wasi_http_types_method_incoming_response_consume(wasi_http_types_borrow_incoming_response(response), &own) ||
        !wasi_http_types_method_incoming_body_stream(wasi_http_types_borrow_incoming_body(own), &stream))
        return false;
    char *bytes = NULL;
    size_t len = 0;
    for (;;) {
        tools_list_u8_t piece;
        wasi_io_streams_stream_error_t error;
        if (!wasi_io_streams_method_input_stream_blocking_read(
                wasi_io_streams_borrow_input_stream(stream), PIECE, &piece, &error)) {
            if (error.tag != WASI_IO_STREAMS_STREAM_ERROR_CLOSED) return false;
            break;
        }
        bytes = realloc(bytes, len + piece.len + 1);
        if (!bytes) abort();
        memcpy(bytes + len, piece.ptr, piece.len);
        len += piece.len;
        tools_list_u8_free(&piece);
    }
    *body = tg_copy(bytes, len);
    return true;
}

static void read_headers(wasi_http_types_own_incoming_response_t response, tg_response *into) {
    wasi_http_types_list_tuple2_field_name_field_value_t list;
    wasi_http_types_own_headers_t own =
        wasi_http_types_method_incoming_response_headers(wasi_http_types_borrow_incoming_response(response));
    wasi_http_types_method_fields_entries(wasi_http_types_borrow_fields(own), &list);
    tg_header *headers = tg_alloc((list.len + 1) * sizeof *headers);
    for (size_t i = 0; i < list.len; i++) {
        char *name = (char *)(uintptr_t)tg_copy(list.ptr[i].f0.ptr, list.ptr[i].f0.len).ptr;
        for (char *at = name; *at; at++)
            if (*at >= 'A' && *at <= 'Z') *at = (char)(*at + 32);
        headers[i] = (tg_header){name, tg_copy(list.ptr[i].f1.ptr, list.ptr[i].f1.len).ptr};
    }
    headers[list.len] = (tg_header){NULL, NULL};
    into->headers = headers;
}

/* Handles that are opened here end with the instance: a call sends few requests, and the host limits its handles. */
tg_host_answer tg_host_http(const tg_request *request, tg_response *response) {
    wasi_http_types_own_fields_t fields = wasi_http_types_constructor_fields();
    bool measured = false; /* the author has set the length of the body */
    for (const tg_header *header = request->headers; header && header->name; header++) {
        if (!append(wasi_http_types_borrow_fields(fields), header->name, header->value))
            return answer(TG_HOST_INVALID, "a header is invalid");
        measured = measured || !strcasecmp(header->name, "content-length");
    }
    if (request->body.len && !measured) {
        /* Without its length a body is sent in chunks, which some servers do not accept. */
        char length[24];
        snprintf(length, sizeof length, "%zu", request->body.len);
        append(wasi_http_types_borrow_fields(fields), "content-length", length);
    }
    wasi_http_types_own_outgoing_request_t outgoing = wasi_http_types_constructor_outgoing_request(fields);
    wasi_http_types_borrow_outgoing_request_t borrowed = wasi_http_types_borrow_outgoing_request(outgoing);
    wasi_http_types_method_t method = method_of(request->method);
    wasi_http_types_own_outgoing_body_t body;
    if (!wasi_http_types_method_outgoing_request_set_method(borrowed, &method) || !set_url(borrowed, request->url))
        return answer(TG_HOST_INVALID, "its URL or method is invalid");
    if (request->body.len && !wasi_http_types_method_outgoing_request_body(borrowed, &body))
        return answer(TG_HOST_INVALID, "the host allows no body");
    wasi_http_outgoing_handler_own_future_incoming_response_t pending;
    wasi_http_types_error_code_t code;
    if (!wasi_http_outgoing_handler_handle(outgoing, NULL, &pending, &code)) return refused(&code);
    if (request->body.len) write_body(body, request->body);
    wasi_http_types_borrow_future_incoming_response_t future = wasi_http_types_borrow_future_incoming_response(pending);
    wasi_http_types_own_pollable_t ready = wasi_http_types_method_future_incoming_response_subscribe(future);
    wasi_io_poll_method_pollable_block(wasi_io_poll_borrow_pollable(ready));
    wasi_http_types_result_result_own_incoming_response_error_code_void_t got;
    if (!wasi_http_types_method_future_incoming_response_get(future, &got) || got.is_err)
        return answer(TG_HOST_UNREACHABLE, "it got no response");
    if (got.val.ok.is_err) return refused(&got.val.ok.val.err);
    wasi_http_types_own_incoming_response_t incoming = got.val.ok.val.ok;
    response->status =
        wasi_http_types_method_incoming_response_status(wasi_http_types_borrow_incoming_response(incoming));
    read_headers(incoming, response);
    if (!read_body(incoming, &response->body)) return answer(TG_HOST_UNREACHABLE, "the response broke off");
    return (tg_host_answer){TG_HOST_OK, {"", 0}};
}

#endif
