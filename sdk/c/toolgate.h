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
 * yyjson reads and writes JSON; `toolgate build` fetches it. Every call runs in an instance of its own, on one thread. Its memory
 * goes with the instance, so nothing here needs to be freed, and no variable outlasts the call. */
#ifndef TOOLGATE_H
#define TOOLGATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Parts of yyjson that tools rarely need and that make a component larger. */
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

/* Bytes. A NUL follows them, which `len` does not count. A text is UTF-8 and can contain NULs. */
typedef struct {
    const char *ptr; /* the first byte */
    size_t len;      /* the number of bytes */
} tg_text;
typedef tg_text tg_bytes;

/* ---- Declarations ----
 *
 * A plugin lists its tools once, at file level. */

/* Who produces the result of a call. */
typedef enum {
    TG_SERVER,   /* the tool's own function */
    TG_HUMAN,    /* a person: the answer is the result */
    TG_CLIENT,   /* the program at the user's end */
    TG_PROVIDER, /* the model's provider, in its own stream */
} tg_executor;

/* The function of a server tool. It returns a value of `tg_doc(call)`, or NULL after tg_fail. */
typedef yyjson_mut_val *(*tg_run)(tg_call *call);

/* A JSON text: TG_JSON({"type": "object"}). */
#define TG_JSON(...) #__VA_ARGS__

/* A tool. Members that are 0, NULL or false have no effect. */
typedef struct {
    const char *name;        /* 1 to 64 letters, digits, `_` or `-` */
    const char *description; /* for the model: what the tool does, and when to use it */
    const char *parameters;  /* a JSON Schema of the arguments, of type object */
    tg_executor executor;   /* who produces the result; 0 is TG_SERVER */
    tg_run run;             /* for TG_SERVER */
    bool requires_approval; /* for TG_SERVER and TG_CLIENT: a person approves each call */
    bool streaming;         /* for TG_SERVER and TG_CLIENT: reports progress before the result */
    const char *title;      /* a name for people */
    const char *result;     /* a JSON Schema of the result; NULL allows any JSON */
    const char *prompt;     /* the text for the person: `{name}` is an argument, `{{` and `}}` are braces */
    const char *risk;       /* "low", "medium", "high" or "critical" */
    uint64_t timeout_ms;    /* for TG_SERVER: limit on running */
    uint64_t expires_ms;    /* for tools that wait: limit on each wait */
    bool durable;           /* for TG_SERVER: a call may wait in the middle of `run`, see tg_ask */
    bool read_only;         /* a hint: it changes nothing */
    bool destructive;       /* a hint: it can destroy data */
    bool idempotent;        /* a hint: a second call with the same arguments changes nothing more */
    const char *options;    /* a JSON object with the other `options` of wit/v0.1/plugin.wit */
} tg_tool;

/* Lists the tools of the plugin, once, at file level. */
#define TOOLGATE_TOOLS(...)                          \
    const tg_tool tg_tools[] = {__VA_ARGS__};        \
    const size_t tg_tool_count = sizeof(tg_tools) / sizeof(tg_tools[0]);

/* The tools that TOOLGATE_TOOLS lists, and their number. */
extern const tg_tool tg_tools[];
extern const size_t tg_tool_count;

/* ---- Arguments and the result ----
 *
 * The host has checked the arguments against the tool's schema, and checks the result against the declared one. */

/* The arguments, an object that fits the tool's schema. */
yyjson_val *tg_arguments(tg_call *call);

/* One argument, or NULL if it is absent. */
yyjson_val *tg_arg(tg_call *call, const char *name);

/* One argument of a type, or the fallback if it is absent or null.
 *
 * It fails if the argument has another type: the call ends as invalid-arguments, regardless of the function's result. A schema with
 * the type prevents this. */
tg_text tg_arg_text(tg_call *call, const char *name); /* an empty text if it is absent */
tg_text tg_arg_text_or(tg_call *call, const char *name, const char *fallback);
int64_t tg_arg_int(tg_call *call, const char *name, int64_t fallback); /* any integer that fits 64 bits, exactly */
double tg_arg_number(tg_call *call, const char *name, double fallback);
bool tg_arg_bool(tg_call *call, const char *name, bool fallback);

/* The document of the result, for yyjson_mut_obj, yyjson_mut_strn and so on. Strings must be UTF-8. */
yyjson_mut_doc *tg_doc(tg_call *call);

/* Copies a string into the result. Replaces bytes that are not UTF-8. */
yyjson_mut_val *tg_string(tg_call *call, const void *ptr, size_t len);

/* ---- Failures ----
 *
 * A failure has a kind, and a message for the model. */

/* The kind of a failure. */
typedef enum {
    TG_INVALID_ARGUMENTS, /* the arguments fit the schema and make no sense */
    TG_FAILED,            /* the attempt failed */
    TG_UNAVAILABLE,       /* the tool needs something that is unavailable now; a later attempt may succeed */
} tg_kind;

/* Tells the model why there is no result, and returns NULL: `return tg_fail(call, TG_FAILED, "no %s", what);`. The last message
 * counts. A function that returns NULL without tg_fail has failed too. abort() and a failed assert() are traps. */
yyjson_mut_val *tg_fail(tg_call *call, tg_kind kind, const char *format, ...) TG_FORMAT(3, 4);

/* ---- The call ----
 *
 * Its identity, its reports, and whether it should end. */

/* The identity of the call. */
tg_text tg_id(const tg_call *call);              /* the id from the caller */
tg_text tg_tool_name(const tg_call *call);       /* the tool's name */
tg_text tg_idempotency_key(const tg_call *call); /* the same at every attempt: pass it to services with side effects */
uint32_t tg_attempt(const tg_call *call);        /* 1, and one more after each crash */

/* The conversation, the turn and the people of a call. */
typedef struct {
    tg_text conversation; /* the conversation of the turn */
    tg_text turn;         /* the turn that contains the call */
    tg_text caller;       /* the principal that submitted the turn */
    tg_text approver;     /* empty for a tool without a gate */
    yyjson_val *context;  /* the JSON that the caller sent with the turn, or NULL */
} tg_scope;
tg_scope tg_scope_of(tg_call *call);

/* The fraction when the progress is unknown. */
#define TG_UNKNOWN (-1.0)

/* Reports progress: one line for people, and 0.0 to 1.0 or TG_UNKNOWN. */
void tg_progress(tg_call *call, const char *message, double fraction);

/* The same with a value of tg_doc(call) for the user interface. */
void tg_report(tg_call *call, const char *message, double fraction, yyjson_mut_val *data);

/* The severity of a log line. */
typedef enum {
    TG_DEBUG, /* for the author of the plugin */
    TG_INFO,  /* needs no action */
    TG_WARN,  /* a problem that does not end the call */
    TG_ERROR, /* the call will not have its result */
} tg_level;

/* Writes a line to the call's log. So does printf. */
void tg_log(tg_call *call, tg_level level, const char *format, ...) TG_FORMAT(3, 4);

/* Whether the call should end, because it was cancelled or its time is nearly up. A tool that runs for long checks this between its
 * steps. It then returns what it has, or a failure. */
bool tg_stop_requested(tg_call *call);

/* ---- Durable calls ----
 *
 * Waits in the middle of a call, for a tool with `.durable = true`. While its call waits, it has no instance, and the host may be
 * stopped. Then the host runs the function again from its beginning, and answers each wait that has ended with the same answer. So the
 * function must do the same each time: clocks and random numbers do. */

/* How a wait ends. */
typedef enum {
    TG_ANSWERED,    /* with an answer or an approval */
    TG_DENIED,      /* somebody denied it */
    TG_EXPIRED,     /* nobody answered in time */
    TG_CANCELLED,   /* the call is being cancelled */
    TG_NOT_GRANTED, /* the call may not wait, or the question is not JSON */
} tg_end;

/* The kinds of waits of a call. */
typedef enum {
    TG_WAIT_ASK,      /* a person's answer */
    TG_WAIT_APPROVE,  /* a decision about a value */
    TG_WAIT_EXTERNAL, /* the result of an external system */
    TG_WAIT_CALLS,    /* the results of other tools */
} tg_wait;

/* A question to a person. Members that are 0 or NULL have no effect. A list ends with NULL. */
typedef struct {
    const char *prompt;         /* the text, of 1 to 4096 bytes; required */
    const char *response;       /* for tg_ask: a JSON Schema of the answer, which the person sees as a form */
    const char *const *choices; /* for tg_ask: the answer is {"decision": one of these, "data": anything, optional} */
    uint64_t expires_ms;        /* limit on the wait, at most that of the tool */
    const char *risk;           /* "low", "medium", "high" or "critical" */
    const char *const *who;     /* who may answer: `principal:NAME`, `group:NAME`, `role:NAME`; NULL is any approver */
    const char *editable;       /* for tg_approve: TG_JSON(["a", "b"]) or TG_JSON("all"): what the approver may change */
    uint32_t quorum;            /* for tg_approve: how many people must approve; 0 is one */
} tg_question;

/* A wait for an external system, such as the end of a job. Members that are 0 or NULL have no effect. */
typedef struct {
    const char *prompt;   /* what is awaited, for people: a text of 1 to 4096 bytes; required */
    const char *schema;   /* a JSON Schema of the result */
    const char *signal;   /* the name of the signal that brings the result: 1 to 64 of the characters `a-z A-Z 0-9 _ . -`. If another
                             call of the conversation waits for this name, the call fails */
    const char *metadata; /* a JSON text for the external system, of at most 4 KiB */
    uint64_t expires_ms;  /* limit on the wait, at most that of the tool */
} tg_external;

/* A call of another tool. All calls of one call together have a limit, 100 unless the operator sets another. */
typedef struct {
    const char *tool;          /* its name; required */
    yyjson_mut_val *arguments; /* an object of tg_doc(call); NULL is an empty one */
} tg_tool_call;

/* The end of a wait. Without a value, tg_fail has been called: `if (!answer.value) return NULL;`. A result that the function returns
 * replaces that failure. */
typedef struct {
    tg_end end;        /* how it ended */
    yyjson_val *value; /* the answer, the value as it was approved, or the result or results; NULL without one */
    tg_text comment;   /* of TG_DENIED; `ptr` is NULL without one */
} tg_answer;

/* Asks a person.
 *
 * It fails, without a value, if there is no answer. `end` says why. */
tg_answer tg_ask(tg_call *call, const tg_question *question);

/* Asks for a decision about a value of tg_doc(call), which the approver sees in full. The host cannot know whether later effects match
 * it. To bind an approval to an effect, put the effect into a tool with `.requires_approval = true`.
 *
 * It fails, without a value, if the value is not approved. `end` says why. */
tg_answer tg_approve(tg_call *call, const tg_question *question, yyjson_mut_val *subject);

/* Waits for an external system. The sender of the result is the caller, an admin, or the holder of a link to the wait. So the value is
 * untrusted. The host has only checked that it fits the schema.
 *
 * It fails, without a value, if there is no result. `end` says why. */
tg_answer tg_await_external(tg_call *call, const tg_external *external);

/* Calls other tools, and waits until all calls have ended. They are a turn of their own, with the approvals, policies and people of any
 * turn: each may take days, or be denied. The plugin's manifest requests the tools under `calls`, and the operator grants them.
 *
 * The value is an array in the order of the calls, with {"ok": true, "result": JSON} or
 * {"ok": false, "error": {"code": string, "message": string}} for each. A result that the host does not control, as that of a client, a
 * provider or an external system, also has "trusted": false.
 *
 * It fails, without a value, if no tool was called. `end` says why. */
tg_answer tg_call_tools(tg_call *call, const tg_tool_call *calls, size_t count);

/* Waits for this time. The host aborts the call of a tool that is not durable. */
void tg_sleep(tg_call *call, uint64_t ms);

/* ---- Capabilities ----
 *
 * A component imports the ones that its code calls, and the operator grants them. A function that fails returns false, and has called
 * tg_fail with TG_UNAVAILABLE if another attempt may succeed, otherwise with TG_FAILED: `if (!tg_kv_set(...)) return NULL;`. */

/* Reads the value of a key in the plugin's own bucket. `value->ptr` is NULL if the key does not exist.
 *
 * It fails if the store cannot be used now, or the plugin may not use it. */
bool tg_kv_get(tg_call *call, const char *key, tg_bytes *value);

/* Writes the value of a key. If several calls can write one key, use tg_kv_update.
 *
 * It fails if the store cannot be used now, or the plugin may not use it. */
bool tg_kv_set(tg_call *call, const char *key, const void *ptr, size_t len);

/* Removes a key. A missing key is not an error.
 *
 * It fails if the store cannot be used now, or the plugin may not use it. */
bool tg_kv_delete(tg_call *call, const char *key);

/* Adds to the number of a key. A missing key counts as 0. A call that runs again after a crash adds again.
 *
 * It fails if the store cannot be used now, or the plugin may not use it, or the value is not a number. */
bool tg_kv_increment(tg_call *call, const char *key, int64_t by, int64_t *sum);

/* Lists the keys with a prefix, in no order.
 *
 * It fails if the store cannot be used now, or the plugin may not use it. */
bool tg_kv_keys(tg_call *call, const char *prefix, tg_text **keys, size_t *count);

/* Computes the new value. It returns false, after tg_fail, to change nothing. `before->ptr` is NULL if there is no value. It can be
 * called several times, so it should have no other effects. */
typedef bool (*tg_step)(tg_call *call, const tg_bytes *before, tg_bytes *after, void *context);

/* Changes the value of a key by compare-and-swap, so that writes of other calls are not lost.
 *
 * It fails if the step does, with nothing written. It fails if the store cannot be used now, or the plugin may not use it, or other
 * calls change the key too often. */
bool tg_kv_update(tg_call *call, const char *key, tg_step step, void *context);

/* Reads a value of the operator, or the placeholder of a secret. `value->ptr` is NULL if the name has none.
 *
 * It fails if the host could not read the configuration. */
bool tg_config_get(tg_call *call, const char *name, tg_text *value);

/* A header. */
typedef struct {
    const char *name, *value; /* NUL ends both */
} tg_header;

/* A request. The host adds an Idempotency-Key to requests that change something, and replaces placeholders with secrets. */
typedef struct {
    const char *method;       /* NULL is GET */
    const char *url;          /* the whole URL, including its query */
    const tg_header *headers; /* ends with one whose name is NULL; may be NULL */
    tg_bytes body;            /* {NULL, 0} for no body */
} tg_request;

/* A response with any status. Redirects are not followed. */
typedef struct {
    uint16_t status;          /* such as 200 */
    const tg_header *headers; /* names in lower case; ends with one whose name is NULL */
    tg_bytes body;            /* the whole body */
} tg_response;

/* Sends a request, if the operator allows it, and reads the whole response.
 *
 * It fails if there is no response: the request is invalid, the host does not allow it, or the server cannot be reached. The call's
 * log names a missing grant (toolgate logs). */
bool tg_http(tg_call *call, const tg_request *request, tg_response *response);

/* The first header with a name, in upper or lower case, or NULL. */
const char *tg_header_of(const tg_response *response, const char *name);

#ifdef __cplusplus
}
#endif
#endif
