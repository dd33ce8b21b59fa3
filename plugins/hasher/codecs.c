/* Hex and base64. */
#include "codecs.h"

#include <string.h>

static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
static const char url[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

size_t encoded_size(size_t len) { return 2 * len + 4; }

size_t encode(codec codec, const uint8_t *bytes, size_t len, char *text) {
    char *at = text;
    if (codec == HEX) {
        for (size_t i = 0; i < len; i++) {
            *at++ = "0123456789abcdef"[bytes[i] >> 4];
            *at++ = "0123456789abcdef"[bytes[i] & 15];
        }
        return (size_t)(at - text);
    }
    const char *alphabet = codec == BASE64 ? plain : url;
    for (size_t i = 0; i < len; i += 3) {
        size_t left = len - i;
        uint32_t group = (uint32_t)bytes[i] << 16 | (left > 1 ? (uint32_t)bytes[i + 1] << 8 : 0) | (left > 2 ? bytes[i + 2] : 0);
        for (size_t digit = 0; digit < 4; digit++) {
            if (digit <= left) *at++ = alphabet[group >> (18 - 6 * digit) & 63];
            else if (codec == BASE64) *at++ = '=';
        }
    }
    return (size_t)(at - text);
}

static int digit_of(codec codec, char c) {
    if (codec == HEX) {
        if (c >= '0' && c <= '9') return c - '0';
        if (c >= 'a' && c <= 'f') return c - 'a' + 10;
        return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
    }
    const char *alphabet = codec == BASE64 ? plain : url;
    const char *found = c ? strchr(alphabet, c) : NULL;
    return found ? (int)(found - alphabet) : -1;
}

bool decode(codec codec, const char *text, size_t len, uint8_t *bytes, size_t *count, size_t *wrong) {
    size_t digits = len, padding = 0;
    int bits = codec == HEX ? 4 : 6, have = 0;
    uint32_t value = 0;
    *count = 0;
    if (codec != HEX)
        while (digits && text[digits - 1] == '=' && padding < 2) digits--, padding++;
    for (size_t i = 0; i < digits; i++) {
        int digit = digit_of(codec, text[i]);
        *wrong = i;
        if (digit < 0) return false;
        value = (value << bits | (uint32_t)digit) & 0xFFFF;
        have += bits;
        if (have >= 8) {
            have -= 8;
            bytes[(*count)++] = (uint8_t)(value >> have);
        }
    }
    *wrong = len;
    if (codec == HEX) return have == 0;
    /* A last group of one digit contains no byte. In one of two or three digits, the surplus bits must be zero (RFC
       4648, 3.5). */
    size_t rest = digits % 4;
    if (rest == 1 || (padding && rest + padding != 4)) return false;
    if (rest && (value & ((1u << have) - 1))) {
        *wrong = digits - 1;
        return false;
    }
    return true;
}
