;; attack = 'Exits, as a program that ends its process.'
;; expect = 'failed(trapped)'
;; says = 'exited'
;; at_once = 4

(import "wasi:cli/exit@0.2.0" "exit" (func $exit (param i32)))

(func $run (param i32 i32) (result i32)
  (call $exit (i32.const 0))
  (unreachable))
