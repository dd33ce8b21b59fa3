;; attack = 'Opens a file of a granted folder under its name with a slash after it, and `..` with one.'
;; expect = 'ok'
;; says = '2'
;; plugin.grants.folders = [{ path = "trailing-slash", at = "/data", write = true }]

(import "wasi:filesystem/preopens@0.2.0" "get-directories" (func $directories (param i32)))
(import "wasi:filesystem/types@0.2.0" "[method]descriptor.open-at" (func $open (param i32 i32 i32 i32 i32 i32 i32)))

(data (i32.const 4200) "file/../")

;; Opens for reading, and returns whether the host refused.
(func $refused (param $path i32) (param $len i32) (param $create i32) (result i64)
  (call $open (i32.load (i32.load (i32.const 4096))) (i32.const 1) (local.get $path) (local.get $len)
    (local.get $create) (i32.const 3) (i32.const 4104))
  (i64.extend_i32_u (i32.load8_u (i32.const 4104))))

(func $run (param i32 i32) (result i32)
  (call $directories (i32.const 4096))
  (if (i64.ne (call $refused (i32.const 4200) (i32.const 4) (i32.const 1)) (i64.const 0)) (then (unreachable)))
  (call $ok_number (i64.add
    (call $refused (i32.const 4200) (i32.const 5) (i32.const 0))
    (call $refused (i32.const 4205) (i32.const 3) (i32.const 0)))))
