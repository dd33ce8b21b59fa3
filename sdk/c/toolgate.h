/* Tools for agents in C, as WebAssembly components for toolgate.
 *
 *     #include "toolgate.h"
 *
 *     static yyjson_mut_val *count(tg_call *call) {
 *         tg_text text = tg_arg_text(call, "text");
 *         ...
 *         return yyjson_mut_uint(tg_doc(call), words);
 *     }
 *
 *     TOOLGATE_TOOLS({
 *         .name = "word_count",
 *         .description = "Counts the words of a text.",
 *         .parameters = TG_JSON({"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}),
 *         .run = count,
 *         .read_only = true,
 *     })
 *
 * JSON is read and written with yyjson, which `toolgate build` fetches. Every call runs in an instance of its own and its memory goes with it,
 * so nothing here needs to be freed, and nothing that a tool keeps in a variable outlasts the call. One thread. */
#ifndef TOOLGATE_H
#define TOOLGATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What a tool hardly needs, and what would make its component larger. */
#define YYJSON_DISABLE_INCR_READER 1
#define YYJSON_DISABLE_NON_STANDARD 1
#define YYJSON_DISABLE_UTILS 1
#include "yyjson.h"

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__) || defined(__clang__)
#define TG_FORMAT(string, first) __attribute__((format(printf, string, first)))
#else
#define TG_FORMAT(string, first)
#endif

/* One call of a server tool. */
typedef struct tg_call tg_call;

/* Bytes, with a NUL behind them that `len` does not count. A text is UTF-8 and may hold NULs of its own. */
typedef struct {
    const char *ptr;
    size_t len;
} tg_text;
typedef tg_text tg_bytes;

/* ---- Declarations ---- */

/* Who produces the result of a call. */
typedef enum {
    TG_SERVER,   /* the tool's own function */
    TG_HUMAN,    /* a person: the answer is the result */
    TG_CLIENT,   /* the program at the user's end */
    TG_PROVIDER, /* the model's provider, in its own stream */
} tg_executor;

/* The function of a server tool. It gives a value of `tg_doc(call)`, or NULL when it failed: see tg_fail. */
typedef yyjson_mut_val *(*tg_run)(tg_call *call);

/* A JSON text as it is written: TG_JSON({"type": "object"}). */
#define TG_JSON(...) #__VA_ARGS__

/* A tool. What is left out is 0, NULL or false, and says nothing. */
typedef struct {
    const char *name;        /* 1 to 64 letters, digits, `_` or `-` */
    const char *description; /* for the model: what the tool does, and when to use it */
    const char *parameters;  /* a JSON Schema of the arguments, of type object */
    tg_executor executor;
    tg_run run;             /* for TG_SERVER */
    bool requires_approval; /* for TG_SERVER and TG_CLIENT: a person is asked first */
    bool streaming;         /* for TG_SERVER and TG_CLIENT: reports progress before the result */
    const char *title;      /* a name for people */
    const char *result;     /* a JSON Schema of the result; any JSON where there is none */
    const char *prompt;     /* what a person is shown: `{name}` is an argument, `{{` and `}}` are braces */
    const char *risk;       /* "low", "medium", "high" or "critical" */
    uint64_t timeout_ms;    /* for TG_SERVER: bound on running */
    uint64_t expires_ms;    /* for what waits: bound on each wait */
    bool read_only;         /* a hint: it changes nothing */
    bool destructive;       /* a hint: what it changes may be lost */
    bool idempotent;        /* a hint: a second call with the same arguments changes nothing more */
    const char *options;    /* a JSON object with everything else that wit/v0.1/plugin.wit lists under `options` */
} tg_tool;

/* Lists the tools of the plugin, once, at file level. */
#define TOOLGATE_TOOLS(...)                          \
    const tg_tool tg_tools[] = {__VA_ARGS__};        \
    const size_t tg_tool_count = sizeof(tg_tools) / sizeof(tg_tools[0]);

extern const tg_tool tg_tools[];
extern const size_t tg_tool_count;

/* ---- Arguments and the result ---- */

/* The arguments, an object that fits the tool's schema. */
yyjson_val *tg_arguments(tg_call *call);

/* One argument, or NULL where it is not there. */
yyjson_val *tg_arg(tg_call *call, const char *name);

/* One argument of a type, or the fallback where it is not there or null. One of another type ends the call as
 * invalid-arguments, whatever the function returns; a schema that says the type keeps that from happening. */
tg_text tg_arg_text(tg_call *call, const char *name); /* an empty text where it is not there */
tg_text tg_arg_text_or(tg_call *call, const char *name, const char *fallback);
int64_t tg_arg_int(tg_call *call, const char *name, int64_t fallback); /* any integer that fits 64 bits, exactly */
double tg_arg_number(tg_call *call, const char *name, double fallback);
bool tg_arg_bool(tg_call *call, const char *name, bool fallback);

/* The document that the result is made in, with yyjson_mut_obj, yyjson_mut_strn and their like. Strings must be UTF-8. */
yyjson_mut_doc *tg_doc(tg_call *call);

/* A string of the result, copied, with what is no UTF-8 replaced. */
yyjson_mut_val *tg_string(tg_call *call, const void *ptr, size_t len);

/* ---- Failures ---- */

typedef enum {
    TG_INVALID_ARGUMENTS, /* the arguments fit the schema and still make no sense */
    TG_FAILED,            /* it was tried and did not work */
    TG_UNAVAILABLE,       /* what the tool needs cannot be reached now; trying again later may help */
} tg_kind;

/* Says why there is no result, for the model, and gives NULL: `return tg_fail(call, TG_FAILED, "no %s", what);`. What was said
 * last counts. A function that gives NULL without a word has failed, too. abort() and a failed assert() are traps. */
yyjson_mut_val *tg_fail(tg_call *call, tg_kind kind, const char *format, ...) TG_FORMAT(3, 4);

/* ---- The call ---- */

tg_text tg_id(const tg_call *call);              /* the id that the caller gave it */
tg_text tg_tool_name(const tg_call *call);       /* the tool's name */
tg_text tg_idempotency_key(const tg_call *call); /* stable over every attempt: hand it to whatever has effects */
uint32_t tg_attempt(const tg_call *call);        /* 1, then one more each time after a crash */

/* Where the call belongs and who is behind it. */
typedef struct {
    tg_text conversation, turn, caller;
    tg_text approver;     /* empty where nobody had to approve */
    yyjson_val *context;  /* what the caller passed along with the turn; NULL where nothing */
} tg_scope;
tg_scope tg_scope_of(tg_call *call);

/* As the fraction: nobody knows how far the call has come. */
#define TG_UNKNOWN (-1.0)

/* Reports progress: one line for people, and 0.0 to 1.0 or TG_UNKNOWN. */
void tg_progress(tg_call *call, const char *message, double fraction);

/* The same with a value of tg_doc(call) for whoever renders the call. */
void tg_report(tg_call *call, const char *message, double fraction, yyjson_mut_val *data);

typedef enum {
    TG_DEBUG, /* for the author of the plugin */
    TG_INFO,  /* worth knowing, nothing to do */
    TG_WARN,  /* something is off and the call goes on */
    TG_ERROR, /* the call will not have its result */
} tg_level;

/* Writes a line to the call's log. So does printf. */
void tg_log(tg_call *call, tg_level level, const char *format, ...) TG_FORMAT(3, 4);

/* Whether the call should come to its end: nobody waits for its result any more, or its time is nearly up. A tool that works
 * long asks between its steps, and ends with what it has or with a failure. */
bool tg_stop_requested(tg_call *call);

/* ---- Capabilities ----
 *
 * A component imports those that its code calls, and the operator grants them. Each function gives false when it could not do
 * it, and has said why with tg_fail: `if (!tg_kv_set(...)) return NULL;`. */

/* The value under a key of the plugin's own bucket; `value->ptr` is NULL where there is none. */
bool tg_kv_get(tg_call *call, const char *key, tg_bytes *value);

/* Puts a value under a key, over whatever was there. Where several calls may write one key: tg_kv_update. */
bool tg_kv_set(tg_call *call, const char *key, const void *ptr, size_t len);

/* Removes a key; one that is not there is fine. */
bool tg_kv_delete(tg_call *call, const char *key);

/* Adds to the number under a key, which counts as 0 where it is not there. A call that is dispatched again adds again. */
bool tg_kv_increment(tg_call *call, const char *key, int64_t by, int64_t *sum);

/* All keys that begin with a prefix, in no order. */
bool tg_kv_keys(tg_call *call, const char *prefix, tg_text **keys, size_t *count);

/* Says what becomes of the value: gives false, with tg_fail, to change nothing. `before->ptr` is NULL where there is none. It
 * may be called several times and should do nothing else. */
typedef bool (*tg_step)(tg_call *call, const tg_bytes *before, tg_bytes *after, void *context);

/* Changes the value under a key by compare-and-swap: what others wrote meanwhile is not lost. */
bool tg_kv_update(tg_call *call, const char *key, tg_step step, void *context);

/* A value of the operator, or the placeholder of a secret; `value->ptr` is NULL where there is none of this name. */
bool tg_config_get(tg_call *call, const char *name, tg_text *value);

typedef struct {
    const char *name, *value;
} tg_header;

/* A request. The host adds an Idempotency-Key to those that change something, and puts a secret in the place of its
 * placeholder. */
typedef struct {
    const char *method;       /* NULL is GET */
    const char *url;          /* whole, with its query */
    const tg_header *headers; /* up to one whose name is NULL; NULL is none */
    tg_bytes body;
} tg_request;

/* An answer, whatever its status. Redirects are not followed. */
typedef struct {
    uint16_t status;
    const tg_header *headers; /* names in lower case; up to one whose name is NULL */
    tg_bytes body;
} tg_response;

/* Sends a request to what the operator allows, and reads the whole answer. */
bool tg_http(tg_call *call, const tg_request *request, tg_response *response);

/* The first header of a name, whatever its case, or NULL. */
const char *tg_header_of(const tg_response *response, const char *name);

#ifdef __cplusplus
}
#endif
#endif
