;; attack = 'Sixty-four calls at once, each of which logs three hundred lines of 4 KiB, which the host keeps with their turn.'
;; expect = 'at most `call_log_bytes` of each call are kept, its last lines'
;; proven_by = ['tests/tests/call_logs.rs::only_the_last_lines_of_a_run_are_kept']
;;
;; [[step]]
;; post = '/v1/conversations/$plugin-$round/turns?wait_ms=60000'
;; body = '{"calls":[<<{"id":"#","tool":"$tool","arguments":{}},*63>>{"id":"last","tool":"$tool","arguments":{}}]}'
;; status = [201]
;;
;; [[step]]
;; get = '/v1/conversations/$plugin-$round/calls/last/log'
;; status = [200]
;; says = '"left_out":12'

(func $run (param i32 i32) (result i32)
  (local $n i32)
  (memory.fill (i32.const 4096) (i32.const 120) (i32.const 4096))
  (loop $again
    (call $log (i32.const 1) (i32.const 4096) (i32.const 4096))
    (local.set $n (i32.add (local.get $n) (i32.const 1)))
    (br_if $again (i32.lt_u (local.get $n) (i32.const 300))))
  (call $ok_number (i64.const 1)))
