/* Native tests: make test. The vectors are those of the standards. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "codecs.h"
#include "hashes.h"
#include "toolgate_test.h"

static void standards(void) {
    static uint8_t bytes[1000000];
    uint8_t digest[32];
    char hex[65] = {0};
    /* RFC 3720, B.4, and the check value of the catalogue of CRCs. */
    tg_test_that(crc32c((const uint8_t *)"123456789", 9) == 0xE3069283u, "CRC-32C of 123456789");
    tg_test_that(crc32c(bytes, 32) == 0x8A9136AAu, "CRC-32C of 32 zeros");
    memset(bytes, 0xFF, 32);
    tg_test_that(crc32c(bytes, 32) == 0x62A8AB43u, "CRC-32C of 32 ones");
    for (int i = 0; i < 32; i++) bytes[i] = (uint8_t)i;
    tg_test_that(crc32c(bytes, 32) == 0x46DD794Eu, "CRC-32C of 0 to 31");
    /* The test vector of xxHash. */
    tg_test_that(xxh64(NULL, 0, 0) == 0xEF46DB3751D8E999u, "XXH64 of nothing");
    tg_test_that(xxh64((const uint8_t *)"a", 1, 0) == 0xD24EC4F1A98C6E5Bu, "XXH64 of a");
    tg_test_that(xxh64((const uint8_t *)"abc", 3, 0) == 0x44BC2CF5AD770999u, "XXH64 of abc");
    tg_test_that(xxh64((const uint8_t *)"Call me Ishmael. Some years ago--never mind how long precisely-", 63, 0) == 0x02A2E85470D6FD96u, "XXH64 of 63 bytes");
    /* FIPS 180-4, examples of NIST. */
    const char *const messages[] = {"", "abc", "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"};
    const char *const digests[] = {
        "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
        "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",
        "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"};
    for (int i = 0; i < 3; i++) {
        sha256((const uint8_t *)messages[i], strlen(messages[i]), digest);
        encode(HEX, digest, 32, hex);
        tg_test_text(hex, digests[i], "SHA-256");
    }
    memset(bytes, 'a', sizeof bytes);
    sha256(bytes, sizeof bytes, digest);
    encode(HEX, digest, 32, hex);
    tg_test_text(hex, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0", "SHA-256 of a million a");
}

static void encodings(void) {
    /* RFC 4648, section 10. */
    const char *const data[] = {"", "f", "fo", "foo", "foob", "fooba", "foobar"};
    const char *const base64[] = {"", "Zg==", "Zm8=", "Zm9v", "Zm9vYg==", "Zm9vYmE=", "Zm9vYmFy"};
    for (int i = 0; i < 7; i++) {
        char text[32] = {0};
        uint8_t bytes[32] = {0};
        size_t count, wrong, len = encode(BASE64, (const uint8_t *)data[i], strlen(data[i]), text);
        tg_test_text(text, base64[i], "base64");
        tg_test_that(decode(BASE64, text, len, bytes, &count, &wrong) && count == strlen(data[i]) && !memcmp(bytes, data[i], count), base64[i]);
        size_t bare = strcspn(text, "=");
        tg_test_that(decode(BASE64, text, bare, bytes, &count, &wrong) && count == strlen(data[i]), "without its padding");
    }
    const struct {
        codec codec;
        const char *text;
        size_t wrong;
    } bad[] = {{BASE64, "Zg=", 3}, {BASE64, "Z", 1}, {BASE64, "Zh==", 1}, {BASE64, "Zm9v=", 5}, {BASE64, "Z===", 1}, {BASE64, "Zm 9v", 2},
               {BASE64, "_-==", 0}, {BASE64URL, "+w", 0}, {HEX, "0", 1}, {HEX, "0g", 1}, {HEX, "ab cd", 2}};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        uint8_t bytes[32];
        size_t count, wrong = 99;
        bool good = decode(bad[i].codec, bad[i].text, strlen(bad[i].text), bytes, &count, &wrong);
        tg_test_that(!good && wrong == bad[i].wrong, bad[i].text);
    }
    /* Every byte, and every length up to 64, there and back. */
    for (size_t len = 0; len <= 256; len += len < 64 ? 1 : 64) {
        for (int codec = HEX; codec <= BASE64URL; codec++) {
            uint8_t bytes[256], back[600];
            char text[600];
            size_t count, wrong;
            for (size_t i = 0; i < len; i++) bytes[i] = (uint8_t)(i * 37 + len);
            size_t size = encode(codec, bytes, len, text);
            tg_test_that(size <= encoded_size(len) && decode(codec, text, size, back, &count, &wrong) && count == len && !memcmp(bytes, back, len), "there and back");
        }
    }
}

int main(void) {
    standards();
    encodings();
    tg_test_declarations();
    tg_test_examples("examples.json");
    tg_test_failure("convert_data", TG_JSON({"data": "Zm 9v", "from": "base64", "to": "hex"}), TG_INVALID_ARGUMENTS, "/data: character 3 is not base64");
    tg_test_failure("hash_data", TG_JSON({"data": "abc", "encoding": "hex"}), TG_INVALID_ARGUMENTS, "/data: the hex ends too early");
    tg_test_result("hash_data", TG_JSON({"data": "a\u0000b", "algorithms": ["crc32c"]}), TG_JSON({"crc32c": "63f9a95c", "bytes": 3}));
    return tg_test_end();
}
