;; attack = "Opens a neighbour's store by a name that leads out of its own."
;; expect = 'ok'
;; says = '1'
;; plugin.grants.keyvalue = true

(import "wasi:keyvalue/store@0.2.0-draft2" "open" (func $open (param i32 i32 i32)))
(data (i32.const 4096) "../calm/default")

;; 1 is the error: there is no such store.
(func $run (param i32 i32) (result i32)
  (call $open (i32.const 4096) (i32.const 15) (i32.const 32))
  (call $ok_number (i64.extend_i32_u (i32.load8_u (i32.const 32)))))
