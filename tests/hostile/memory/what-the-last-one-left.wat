;; attack = 'Searches its memory for data of an earlier call, and then writes some.'
;; expect = 'ok'
;; says = '0'
;; never = ['1']
;; at_once = 4

(func $run (param i32 i32) (result i32)
  (local $at i32)
  (local $found i64)
  (if (i32.eq (memory.grow (i32.const 200)) (i32.const -1)) (then (unreachable)))
  (local.set $at (i32.const 131072))
  (loop $again
    (if (i64.eq (i64.load (local.get $at)) (i64.const 0x5ec2e75ec2e75ec2))
      (then (local.set $found (i64.const 1))))
    (i64.store (local.get $at) (i64.const 0x5ec2e75ec2e75ec2))
    (local.set $at (i32.add (local.get $at) (i32.const 8)))
    (br_if $again (i32.lt_u (local.get $at) (i32.const 13000000))))
  (call $ok_number (local.get $found)))
