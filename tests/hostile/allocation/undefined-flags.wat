;; attack = 'Opens a missing file with every undefined bit of all three sets of flags.'
;; expect = 'ok'
;; says = '20'
;; plugin.grants.folders = [{ path = "undefined-flags", at = "/data", write = true }]

(import "wasi:filesystem/preopens@0.2.0" "get-directories" (func $directories (param i32)))
(import "wasi:filesystem/types@0.2.0" "[method]descriptor.open-at" (func $open (param i32 i32 i32 i32 i32 i32 i32)))

(data (i32.const 4200) "file")

;; The host ignores the undefined bits. Nothing asks to create the file, so it is missing: `no-entry` is 20.
(func $run (param i32 i32) (result i32)
  (call $directories (i32.const 4096))
  (call $open (i32.load (i32.load (i32.const 4096))) (i32.const 0xfe) (i32.const 4200) (i32.const 4)
    (i32.const 0xf0) (i32.const 0xc1) (i32.const 4104))
  (if (i32.eqz (i32.load8_u (i32.const 4104))) (then (unreachable)))
  (call $ok_number (i64.extend_i32_u (i32.load8_u (i32.const 4108)))))
