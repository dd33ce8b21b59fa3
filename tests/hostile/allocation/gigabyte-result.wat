;; attack = 'A result whose length is said to be one gigabyte, of which there are two pages.'
;; expect = 'failed(trapped)'
;; memory_mib = 64
;; at_once = 4

(func $run (param i32 i32) (result i32)
  (call $ok (i32.const 4096) (i32.const 1073741824)))
