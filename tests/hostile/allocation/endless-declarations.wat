;; attack = 'A list of four billion tools in a memory that holds none.'
;; expect = 'refused(catalog)'
;; memory_mib = 64

(func $tools (result i32)
  (i32.store (i32.const 168) (i32.const 4096))
  (i32.store (i32.const 172) (i32.const -1))
  (i32.const 168))
