;; attack = 'A tool with an undefined executor.'
;; expect = 'refused(catalog)'

(func $tools (result i32)
  (i32.store (i32.const 168) (i32.const 128))
  (i32.store (i32.const 172) (i32.const 1))
  (i32.store8 (i32.const 152) (i32.const 200))
  (i32.const 168))
