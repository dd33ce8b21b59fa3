/* The host of a component: the generated bindings, and conversions between them and the SDK. */
#ifdef __wasm__

#include <stdlib.h>
#include <string.h>

#include "tools.h"
#include "toolgate_host.h"

static tools_string_t out(tg_text text) { return (tools_string_t){(uint8_t *)(uintptr_t)text.ptr, text.len}; }

static tg_text in(tools_string_t text) { return tg_copy(text.ptr, text.len); }

static tools_string_t out_literal(const char *text) { return out(tg_clean(text, text ? strlen(text) : 0)); }

/* ---- Exports of the component ---- */

void exports_toolgate_plugin_catalog_tools(exports_toolgate_plugin_catalog_list_tool_t *ret) {
    ret->len = tg_tool_count;
    ret->ptr = tg_alloc(tg_tool_count * sizeof *ret->ptr);
    for (size_t i = 0; i < tg_tool_count; i++) {
        const tg_tool *tool = &tg_tools[i];
        const char *wrong;
        ret->ptr[i] = (exports_toolgate_plugin_catalog_tool_t){
            .name = out_literal(tool->name),
            .description = out_literal(tool->description),
            .parameters = out_literal(tool->parameters ? tool->parameters : "{\"type\":\"object\"}"),
            .executor = (uint8_t)tool->executor,
            .approval = tool->requires_approval ? TOOLGATE_PLUGIN_TOOL_TYPES_APPROVAL_REQUIRES_APPROVAL
                                                : TOOLGATE_PLUGIN_TOOL_TYPES_APPROVAL_AUTO,
            .streaming = tool->streaming,
            .options = out(tg_options_of(tool, &wrong)),
        };
        if (wrong) tg_host_log(TG_ERROR, tg_clean(wrong, strlen(wrong)));
    }
}

bool exports_toolgate_plugin_server_run(
    exports_toolgate_plugin_server_call_t *call, exports_toolgate_plugin_server_json_t *ret,
    exports_toolgate_plugin_server_failure_t *err) {
    tg_wire_call wire = {
        .id = in(call->id),
        .tool = in(call->tool),
        .arguments = in(call->arguments),
        .idempotency_key = in(call->idempotency_key),
        .scope = in(call->scope),
        .attempt = call->attempt,
    };
    tg_outcome outcome = tg_carry_out(&wire);
    if (outcome.ok) {
        *ret = out(outcome.text);
        return true;
    }
    err->tag = (uint8_t)outcome.kind; /* the same numbers */
    err->val.failed = out(outcome.text);
    return false;
}

/* ---- Imports of the component ---- */

void tg_host_progress(tg_text message, double fraction, const tg_text *data) {
    toolgate_plugin_host_update_t update = {
        .message = out(message),
        .fraction = {.is_some = fraction >= 0 && fraction <= 1, .val = fraction},
        .data = {.is_some = data != NULL},
    };
    if (data) update.data.val = out(*data);
    toolgate_plugin_host_progress(&update);
}

void tg_host_log(tg_level level, tg_text message) {
    tools_string_t text = out(message);
    toolgate_plugin_host_log((uint8_t)level, &text);
}

bool tg_host_stop_requested(void) { return toolgate_plugin_host_stop_requested(); }

tg_end tg_host_wait(tg_wait wait, tg_text question, tg_text *text) {
    static bool (*const waits[])(tools_string_t *, tools_string_t *, toolgate_plugin_durable_wait_error_t *) = {
        [TG_WAIT_ASK] = toolgate_plugin_durable_ask,
        [TG_WAIT_APPROVE] = toolgate_plugin_durable_approve,
        [TG_WAIT_EXTERNAL] = toolgate_plugin_durable_await_external,
        [TG_WAIT_CALLS] = toolgate_plugin_durable_call_tools,
    };
    tools_string_t asked = out(question), found;
    toolgate_plugin_durable_wait_error_t error;
    if (waits[wait](&asked, &found, &error)) {
        *text = in(found);
        return TG_ANSWERED;
    }
    switch (error.tag) {
    case TOOLGATE_PLUGIN_DURABLE_WAIT_ERROR_DENIED:
        if (error.val.denied.is_some) *text = in(error.val.denied.val);
        return TG_DENIED;
    case TOOLGATE_PLUGIN_DURABLE_WAIT_ERROR_EXPIRED:
        return TG_EXPIRED;
    case TOOLGATE_PLUGIN_DURABLE_WAIT_ERROR_CANCELLED:
        return TG_CANCELLED;
    default:
        *text = in(error.val.not_granted);
        return TG_NOT_GRANTED;
    }
}

void tg_host_sleep(uint64_t ms) { toolgate_plugin_durable_sleep(ms); }

static tg_host_answer answer(tg_host_status status, const char *why) {
    return (tg_host_answer){status, {why, strlen(why)}};
}

static const tg_host_answer fine = {TG_HOST_OK, {"", 0}};

/* ---- wasi:keyvalue ---- */

static tg_host_answer refused(const wasi_keyvalue_store_error_t *error) {
    switch (error->tag) {
    case WASI_KEYVALUE_STORE_ERROR_NO_SUCH_STORE:
        return answer(TG_HOST_DENIED, "there is no such bucket");
    case WASI_KEYVALUE_STORE_ERROR_ACCESS_DENIED:
        return answer(TG_HOST_DENIED, "this plugin may not use the bucket");
    default:
        return (tg_host_answer){TG_HOST_UNREACHABLE, in(error->val.other)};
    }
}

/* The plugin's own bucket, which the first use opens. An instance runs one call, so it stays open. */
static tg_host_answer bucket(wasi_keyvalue_store_borrow_bucket_t *borrowed) {
    static bool opened;
    static wasi_keyvalue_store_own_bucket_t own;
    if (!opened) {
        tools_string_t name = out_literal("default");
        wasi_keyvalue_store_error_t error;
        if (!wasi_keyvalue_store_open(&name, &own, &error)) return refused(&error);
        opened = true;
    }
    *borrowed = wasi_keyvalue_store_borrow_bucket(own);
    return fine;
}

static void optional(const tools_option_list_u8_t *found, tg_bytes *value) {
    *value = found->is_some ? tg_copy(found->val.ptr, found->val.len) : (tg_bytes){NULL, 0};
}

tg_host_answer tg_host_kv_get(tg_text key, tg_bytes *value) {
    wasi_keyvalue_store_borrow_bucket_t self;
    wasi_keyvalue_store_error_t error;
    tools_option_list_u8_t found;
    tools_string_t name = out(key);
    tg_host_answer open = bucket(&self);
    if (open.status != TG_HOST_OK) return open;
    if (!wasi_keyvalue_store_method_bucket_get(self, &name, &found, &error)) return refused(&error);
    optional(&found, value);
    return fine;
}

tg_host_answer tg_host_kv_set(tg_text key, tg_bytes value) {
    wasi_keyvalue_store_borrow_bucket_t self;
    wasi_keyvalue_store_error_t error;
    tools_string_t name = out(key);
    tools_list_u8_t bytes = {(uint8_t *)(uintptr_t)value.ptr, value.len};
    tg_host_answer open = bucket(&self);
    if (open.status != TG_HOST_OK) return open;
    return wasi_keyvalue_store_method_bucket_set(self, &name, &bytes, &error) ? fine : refused(&error);
}

tg_host_answer tg_host_kv_delete(tg_text key) {
    wasi_keyvalue_store_borrow_bucket_t self;
    wasi_keyvalue_store_error_t error;
    tools_string_t name = out(key);
    tg_host_answer open = bucket(&self);
    if (open.status != TG_HOST_OK) return open;
    return wasi_keyvalue_store_method_bucket_delete(self, &name, &error) ? fine : refused(&error);
}

tg_host_answer tg_host_kv_increment(tg_text key, int64_t by, int64_t *sum) {
    wasi_keyvalue_store_borrow_bucket_t self;
    wasi_keyvalue_store_error_t error;
    tools_string_t name = out(key);
    tg_host_answer open = bucket(&self);
    if (open.status != TG_HOST_OK) return open;
    return wasi_keyvalue_atomics_increment(self, &name, by, sum, &error) ? fine : refused(&error);
}

tg_host_answer tg_host_kv_keys(tg_text **keys, size_t *count) {
    wasi_keyvalue_store_borrow_bucket_t self;
    tools_string_t cursor;
    tools_string_t *from = NULL;
    tg_host_answer open = bucket(&self);
    if (open.status != TG_HOST_OK) return open;
    *keys = tg_alloc(0);
    *count = 0;
    for (;;) {
        wasi_keyvalue_store_key_response_t page;
        wasi_keyvalue_store_error_t error;
        if (!wasi_keyvalue_store_method_bucket_list_keys(self, from, &page, &error)) return refused(&error);
        *keys = realloc(*keys, (*count + page.keys.len + 1) * sizeof **keys);
        if (!*keys) abort();
        for (size_t i = 0; i < page.keys.len; i++) (*keys)[(*count)++] = in(page.keys.ptr[i]);
        if (!page.cursor.is_some) return fine;
        cursor = page.cursor.val;
        from = &cursor;
    }
}

tg_host_answer tg_host_kv_look(tg_text key, tg_host_cas *cas, tg_bytes *value) {
    wasi_keyvalue_store_borrow_bucket_t self;
    wasi_keyvalue_store_error_t error;
    wasi_keyvalue_atomics_own_cas_t look;
    tools_string_t name = out(key);
    tg_host_answer open = bucket(&self);
    if (open.status != TG_HOST_OK) return open;
    if (!wasi_keyvalue_atomics_static_cas_new(self, &name, &look, &error)) return refused(&error);
    *cas = (tg_host_cas){(uint64_t)(uint32_t)look.__handle, key};
    return tg_host_kv_current(cas, value);
}

static wasi_keyvalue_atomics_own_cas_t handle(const tg_host_cas *cas) {
    return (wasi_keyvalue_atomics_own_cas_t){(int32_t)(uint32_t)cas->look};
}

tg_host_answer tg_host_kv_current(tg_host_cas *cas, tg_bytes *value) {
    wasi_keyvalue_store_error_t error;
    tools_option_list_u8_t found;
    wasi_keyvalue_atomics_borrow_cas_t self = wasi_keyvalue_atomics_borrow_cas(handle(cas));
    if (!wasi_keyvalue_atomics_method_cas_current(self, &found, &error)) return refused(&error);
    optional(&found, value);
    return fine;
}

tg_host_answer tg_host_kv_swap(tg_host_cas *cas, tg_bytes value) {
    wasi_keyvalue_atomics_cas_error_t error;
    tools_list_u8_t bytes = {(uint8_t *)(uintptr_t)value.ptr, value.len};
    if (wasi_keyvalue_atomics_swap(handle(cas), &bytes, &error)) return fine;
    if (error.tag == WASI_KEYVALUE_ATOMICS_CAS_ERROR_STORE_ERROR) return refused(&error.val.store_error);
    cas->look = (uint64_t)(uint32_t)error.val.cas_failed.__handle;
    return answer(TG_HOST_RACE, "another call was faster");
}

/* ---- wasi:config ---- */

tg_host_answer tg_host_config_get(tg_text name, tg_text *value) {
    wasi_config_store_error_t error;
    tools_option_string_t found;
    tools_string_t key = out(name);
    if (!wasi_config_store_get(&key, &found, &error)) return (tg_host_answer){TG_HOST_UNREACHABLE, in(error.val.upstream)};
    *value = found.is_some ? in(found.val) : (tg_text){NULL, 0};
    return fine;
}

#endif
