;; attack = 'Searches its table for functions of an earlier call, and then stores some.'
;; expect = 'ok'
;; says = '0'
;; never = ['1']
;; at_once = 4

(table $t 10000 funcref)
(elem declare func $mine)
(func $mine)

(func $run (param i32 i32) (result i32)
  (local $at i32)
  (local $found i64)
  (loop $again
    (if (i32.eqz (ref.is_null (table.get $t (local.get $at))))
      (then (local.set $found (i64.const 1))))
    (table.set $t (local.get $at) (ref.func $mine))
    (local.set $at (i32.add (local.get $at) (i32.const 1)))
    (br_if $again (i32.lt_u (local.get $at) (i32.const 10000))))
  (call $ok_number (local.get $found)))
