;; attack = 'A million tools of empty texts: small for the guest, large for the host.'
;; expect = 'refused(catalog)'
;; memory_mib = 128

(func $tools (result i32)
  (if (i32.eq (memory.grow (i32.const 600)) (i32.const -1)) (then (unreachable)))
  (i32.store (i32.const 168) (i32.const 131072))
  (i32.store (i32.const 172) (i32.const 1000000))
  (i32.const 168))
