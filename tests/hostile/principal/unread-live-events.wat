;; attack = 'Event streams of twenty conversations, none of them read, while sixty-four calls of each report progress of 60 KB again and again.'
;; expect = 'each stream keeps a part of the reports, and the calls end'
;; memory_mib = 128
;; proven_by = ['host/dispatch/src/feed.rs::followers_that_do_not_read_keep_a_limited_size', 'host/dispatch/src/ring.rs::a_ring_is_bounded_in_bytes_and_in_number']
;;
;; [[step]]
;; hold = "GET /v1/conversations/$plugin-$n/events HTTP/1.1\r\nhost: 127.0.0.1\r\nauthorization: Bearer $token\r\n\r\n"
;; times = 20
;; answered = { 200 = 20 }
;;
;; [[step]]
;; post = '/v1/conversations/$plugin-$n/turns?wait_ms=60000&until=settled'
;; body = '{"calls":[<<{"id":"$round-#","tool":"$tool","arguments":{}},*63>>{"id":"$round-last","tool":"$tool","arguments":{}}]}'
;; status = [201]
;; says = '"outcome":"ok"'
;; never = ['"outcome":"failed"']
;; times = 20

(data (i32.const 4096) "\22")
(data (i32.const 64095) "\22")

(func $run (param i32 i32) (result i32)
  (local $n i32)
  (memory.fill (i32.const 4097) (i32.const 120) (i32.const 59998))
  (loop $again
    (call $progress (i32.const 4096) (i32.const 10) (i32.const 1) (f64.const 0.5) (i32.const 1)
      (i32.const 4096) (i32.const 60000))
    (local.set $n (i32.add (local.get $n) (i32.const 1)))
    (br_if $again (i32.lt_u (local.get $n) (i32.const 4))))
  (call $ok_number (i64.const 1)))
