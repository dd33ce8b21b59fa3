;; attack = 'Opens files until the host has no descriptors left.'
;; expect = 'failed(limit_exceeded)'
;; says = '32 files and folders open at once'
;; plugin.grants.folders = [{ path = "open-files", at = "/data", write = true }]
;; at_once = 4
;; proven_by = ["host/sandbox/tests/all/files.rs::open_files_are_limited_and_charged", "host/sandbox/tests/all/files.rs::write_beyond_the_end_also_pays_for_the_gap"]

(import "wasi:filesystem/preopens@0.2.0" "get-directories" (func $directories (param i32)))
(import "wasi:filesystem/types@0.2.0" "[method]descriptor.open-at" (func $open (param i32 i32 i32 i32 i32 i32 i32)))

(data (i32.const 4200) "file")

;; Ends when the host refuses to open one more. A host without a limit runs out of descriptors or of the call's time.
(func $run (param i32 i32) (result i32)
  (call $directories (i32.const 4096))
  (loop $again
    (call $open (i32.load (i32.load (i32.const 4096))) (i32.const 0) (i32.const 4200) (i32.const 4)
      (i32.const 1) (i32.const 3) (i32.const 4104))
    (br_if $again (i32.eqz (i32.load8_u (i32.const 4104)))))
  (call $ok_number (i64.const 1)))
