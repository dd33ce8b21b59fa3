/* Computes hashes of data, and converts data to other encodings. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "codecs.h"
#include "hashes.h"
#include "toolgate.h"

/* The encoding with this name. -1 is UTF-8, which is the data itself. */
static int codec_of(const char *name) {
    static const char *const names[] = {"hex", "base64", "base64url"};
    for (int i = 0; i < 3; i++)
        if (!strcmp(name, names[i])) return i;
    return -1;
}

/* The bytes of an argument, decoded as another argument names. Returns false after it failed the call. */
static bool data_of(tg_call *call, const char *encoding, tg_bytes *data) {
    tg_text text = tg_arg_text(call, "data");
    int known = codec_of(tg_arg_text_or(call, encoding, "utf8").ptr);
    if (known < 0) {
        *data = text;
        return true;
    }
    size_t wrong;
    uint8_t *bytes = malloc(text.len + 1);
    if (!bytes) abort();
    data->ptr = (const char *)bytes;
    if (decode((codec)known, text.ptr, text.len, bytes, &data->len, &wrong)) return true;
    if (wrong < text.len) tg_fail(call, TG_INVALID_ARGUMENTS, "/data: character %zu is not %s", wrong + 1, tg_arg_text(call, encoding).ptr);
    else tg_fail(call, TG_INVALID_ARGUMENTS, "/data: the %s ends too early", tg_arg_text(call, encoding).ptr);
    return false;
}

static const char *const algorithms[] = {"crc32c", "xxh64", "sha256"};

/* The hash with this name, in hexadecimal. */
static void hash(const char *algorithm, tg_bytes data, char hex[65]) {
    const uint8_t *bytes = (const uint8_t *)data.ptr;
    if (!strcmp(algorithm, "crc32c")) {
        snprintf(hex, 65, "%08" PRIx32, crc32c(bytes, data.len));
    } else if (!strcmp(algorithm, "xxh64")) {
        snprintf(hex, 65, "%016" PRIx64, xxh64(bytes, data.len, 0));
    } else {
        uint8_t digest[32];
        sha256(bytes, data.len, digest);
        hex[encode(HEX, digest, 32, hex)] = 0;
    }
}

static yyjson_mut_val *hash_data(tg_call *call) {
    tg_bytes data;
    if (!data_of(call, "encoding", &data)) return NULL;
    yyjson_mut_val *result = yyjson_mut_obj(tg_doc(call));
    yyjson_val *asked = tg_arg(call, "algorithms");
    for (size_t i = 0; i < sizeof algorithms / sizeof algorithms[0]; i++) {
        bool wanted = !yyjson_arr_size(asked);
        yyjson_val *one;
        yyjson_arr_iter each = yyjson_arr_iter_with(asked);
        while ((one = yyjson_arr_iter_next(&each))) wanted = wanted || yyjson_equals_str(one, algorithms[i]);
        char hex[65];
        if (!wanted) continue;
        hash(algorithms[i], data, hex);
        yyjson_mut_obj_add_strcpy(tg_doc(call), result, algorithms[i], hex);
    }
    yyjson_mut_obj_add_uint(tg_doc(call), result, "bytes", data.len);
    return result;
}

static yyjson_mut_val *verify_hash(tg_call *call) {
    tg_bytes data;
    char hex[65];
    if (!data_of(call, "encoding", &data)) return NULL;
    const char *algorithm = tg_arg_text(call, "algorithm").ptr;
    hash(algorithm, data, hex);
    tg_text expected = tg_arg_text(call, "expected");
    if (expected.len != strlen(hex))
        return tg_fail(call, TG_INVALID_ARGUMENTS, "/expected: %s has %zu digits of hex, not %zu", algorithm, strlen(hex), expected.len);
    unsigned differ = 0;
    for (size_t i = 0; i < expected.len; i++) {
        char c = expected.ptr[i];
        differ |= (unsigned)(hex[i] ^ (c >= 'A' && c <= 'F' ? c + 32 : c));
    }
    yyjson_mut_val *result = yyjson_mut_obj(tg_doc(call));
    yyjson_mut_obj_add_bool(tg_doc(call), result, "matches", !differ);
    yyjson_mut_obj_add_strcpy(tg_doc(call), result, "actual", hex);
    return result;
}

static yyjson_mut_val *convert_data(tg_call *call) {
    tg_bytes data;
    if (!data_of(call, "from", &data)) return NULL;
    int known = codec_of(tg_arg_text(call, "to").ptr);
    if (known < 0) {
        yyjson_mut_val *text = tg_string(call, data.ptr, data.len);
        if (yyjson_mut_get_len(text) != data.len || memcmp(yyjson_mut_get_str(text), data.ptr, data.len))
            return tg_fail(call, TG_INVALID_ARGUMENTS, "/data: its bytes are not UTF-8, so they are no text; convert to hex or base64");
        return text;
    }
    char *text = malloc(encoded_size(data.len));
    if (!text) abort();
    size_t len = encode((codec)known, (const uint8_t *)data.ptr, data.len, text);
    return tg_string(call, text, len);
}

TOOLGATE_TOOLS(
    {.name = "hash_data",
     .description = "Hashes data with CRC-32C, XXH64 and SHA-256. Gives hexadecimal digests and the number of bytes.",
     .title = "Hash data",
     .parameters = TG_JSON({
        "type": "object",
        "properties": {
            "data": {"type": "string", "description": "The data, in the encoding that is said."},
            "encoding": {"enum": ["utf8", "hex", "base64", "base64url"], "default": "utf8", "description": "What the data is written in."},
            "algorithms": {"type": "array", "items": {"enum": ["crc32c", "xxh64", "sha256"]}, "description": "Which hashes; all of them, if none is named."}
        },
        "required": ["data"],
        "additionalProperties": false
     }),
     .result = TG_JSON({
        "type": "object",
        "properties": {"crc32c": {"type": "string"}, "xxh64": {"type": "string"}, "sha256": {"type": "string"}, "bytes": {"type": "integer"}},
        "required": ["bytes"]
     }),
     .run = hash_data, .read_only = true, .idempotent = true},
    {.name = "verify_hash",
     .description = "Says whether data has the hash that is expected of it, for instance after a download.",
     .title = "Verify a hash",
     .parameters = TG_JSON({
        "type": "object",
        "properties": {
            "data": {"type": "string", "description": "The data, in the encoding that is said."},
            "encoding": {"enum": ["utf8", "hex", "base64", "base64url"], "default": "utf8", "description": "What the data is written in."},
            "algorithm": {"enum": ["crc32c", "xxh64", "sha256"]},
            "expected": {"type": "string", "pattern": "^[0-9a-fA-F]+$", "description": "The hash, in hexadecimal."}
        },
        "required": ["data", "algorithm", "expected"],
        "additionalProperties": false
     }),
     .result = TG_JSON({
        "type": "object",
        "properties": {"matches": {"type": "boolean"}, "actual": {"type": "string"}},
        "required": ["matches", "actual"]
     }),
     .run = verify_hash, .read_only = true, .idempotent = true},
    {.name = "convert_data",
     .description = "Writes data in another encoding: text (UTF-8), hexadecimal, base64, or base64 for URLs.",
     .title = "Convert data",
     .parameters = TG_JSON({
        "type": "object",
        "properties": {
            "data": {"type": "string", "description": "The data, in the encoding `from`."},
            "from": {"enum": ["utf8", "hex", "base64", "base64url"]},
            "to": {"enum": ["utf8", "hex", "base64", "base64url"]}
        },
        "required": ["data", "from", "to"],
        "additionalProperties": false
     }),
     .result = TG_JSON({"type": "string"}),
     .run = convert_data, .read_only = true, .idempotent = true}
)
