;; attack = 'A result with a claimed length of one gigabyte in a memory of two pages.'
;; expect = 'failed(trapped)'
;; memory_mib = 64
;; at_once = 4

(func $run (param i32 i32) (result i32)
  (call $ok (i32.const 4096) (i32.const 1073741824)))
