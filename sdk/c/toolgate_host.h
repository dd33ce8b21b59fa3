/* The boundary between the SDK and a host (toolgate_wasi.c) or a test (toolgate_test.c). Not for plugins. Texts to the host are valid
 * UTF-8. Memory from the host is never freed. */
#ifndef TOOLGATE_HOST_H
#define TOOLGATE_HOST_H

#include "toolgate.h"

/* One call as the interface has it. */
typedef struct {
    tg_text id, tool, arguments, idempotency_key, scope;
    uint32_t attempt;
} tg_wire_call;

/* The outcome: a JSON text, or the message of a failure. */
typedef struct {
    bool ok;
    tg_kind kind;
    tg_text text; /* allocated */
} tg_outcome;

tg_outcome tg_carry_out(const tg_wire_call *call);

/* The JSON object of a tool's options, allocated. `wrong` is NULL, or the mistake in the declaration. */
tg_text tg_options_of(const tg_tool *tool, const char **wrong);

/* A copy with U+FFFD for bytes that are not UTF-8, and a NUL after it. */
tg_text tg_clean(const void *ptr, size_t len);

/* A copy with a NUL after it. Ends the program if there is no memory. */
tg_text tg_copy(const void *ptr, size_t len);
void *tg_alloc(size_t size);

void tg_host_progress(tg_text message, double fraction, const tg_text *data);
void tg_host_log(tg_level level, tg_text message);
bool tg_host_stop_requested(void);

/* Waits. `text` gets the answer, the comment of a denial (`ptr` is NULL without one), or the message of TG_NOT_GRANTED. */
tg_end tg_host_wait(tg_wait wait, tg_text question, tg_text *text);
void tg_host_sleep(uint64_t ms);

/* The status of a capability. `why` has a message for the last three. */
typedef enum { TG_HOST_OK, TG_HOST_RACE, TG_HOST_DENIED, TG_HOST_INVALID, TG_HOST_UNREACHABLE } tg_host_status;
typedef struct {
    tg_host_status status;
    tg_text why;
} tg_host_answer;

tg_host_answer tg_host_kv_get(tg_text key, tg_bytes *value);
tg_host_answer tg_host_kv_set(tg_text key, tg_bytes value);
tg_host_answer tg_host_kv_delete(tg_text key);
tg_host_answer tg_host_kv_increment(tg_text key, int64_t by, int64_t *sum);
/* All keys. */
tg_host_answer tg_host_kv_keys(tg_text **keys, size_t *count);
/* Opens a handle of a key and reads its value. A swap is a race if the key was written since, and then renews the handle. */
typedef struct {
    uint64_t look;
    tg_text key;
} tg_host_cas;
tg_host_answer tg_host_kv_look(tg_text key, tg_host_cas *cas, tg_bytes *value);
tg_host_answer tg_host_kv_current(tg_host_cas *cas, tg_bytes *value);
tg_host_answer tg_host_kv_swap(tg_host_cas *cas, tg_bytes value);
tg_host_answer tg_host_config_get(tg_text name, tg_text *value);
tg_host_answer tg_host_http(const tg_request *request, tg_response *response);

#endif
