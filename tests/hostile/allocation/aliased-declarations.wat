;; attack = 'Twenty thousand tools that share one text of 100 KiB: 8 GB for the host, 800 KB for the guest.'
;; expect = 'refused(catalog)'
;; memory_mib = 128

(func $tools (result i32)
  (local $at i32)
  (if (i32.eq (memory.grow (i32.const 30)) (i32.const -1)) (then (unreachable)))
  (memory.fill (i32.const 4096) (i32.const 120) (i32.const 102400))
  (local.set $at (i32.const 131072))
  (loop $again
    (i32.store (local.get $at) (i32.const 4096))
    (i32.store offset=4 (local.get $at) (i32.const 102400))
    (i32.store offset=8 (local.get $at) (i32.const 4096))
    (i32.store offset=12 (local.get $at) (i32.const 102400))
    (i32.store offset=16 (local.get $at) (i32.const 4096))
    (i32.store offset=20 (local.get $at) (i32.const 102400))
    (i32.store offset=28 (local.get $at) (i32.const 4096))
    (i32.store offset=32 (local.get $at) (i32.const 102400))
    (local.set $at (i32.add (local.get $at) (i32.const 36)))
    (br_if $again (i32.lt_u (local.get $at) (i32.const 851072))))
  (i32.store (i32.const 168) (i32.const 131072))
  (i32.store (i32.const 172) (i32.const 20000))
  (i32.const 168))
