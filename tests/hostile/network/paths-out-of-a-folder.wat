;; attack = 'Paths out of a granted folder: `..`, absolute, through a link, by renaming, through a link that it makes itself.'
;; expect = 'ok'
;; says = '7'
;; plugin.grants.folders = [{ path = "paths-out-of-a-folder", at = "/data", write = true }]
;; files."paths-out-of-a-folder/out".link = "../toolgate.toml"
;; proven_by = [
;;   "host/sandbox/tests/all/files.rs::only_the_granted_folder_is_reachable",
;;   "host/sandbox/tests/all/files.rs::moves_and_links_stay_within_one_folder",
;;   "host/sandbox/tests/all/files.rs::file_of_a_read_only_folder_is_not_truncated",
;;   "host/sandbox/tests/all/files.rs::symlink_that_replaces_a_file_is_not_followed",
;;   "host/sandbox/tests/all/files.rs::symlink_that_replaces_a_granted_folder_is_not_followed",
;;   "host/toolgate/tests/grants.rs::overlapping_folders_are_refused",
;; ]

(import "wasi:filesystem/preopens@0.2.0" "get-directories" (func $directories (param i32)))
(import "wasi:filesystem/types@0.2.0" "[method]descriptor.open-at" (func $open_at (param i32 i32 i32 i32 i32 i32 i32)))
(import "wasi:filesystem/types@0.2.0" "[method]descriptor.rename-at" (func $rename_at (param i32 i32 i32 i32 i32 i32 i32)))
(import "wasi:filesystem/types@0.2.0" "[method]descriptor.symlink-at" (func $symlink_at (param i32 i32 i32 i32 i32 i32)))

;; At 4200 "../toolgate.toml", at 4216 "/etc/passwd", at 4227 "out", at 4230 "own", at 4233 "own/data".
(data (i32.const 4200) "../toolgate.toml/etc/passwdoutownown/data")

(func $folder (result i32) (i32.load (i32.load (i32.const 4096))))

;; Opens, follows links, and returns whether the host refused.
(func $open (param $path i32) (param $len i32) (param $how i32) (result i64)
  (call $open_at (call $folder) (i32.const 1) (local.get $path) (local.get $len) (local.get $how) (i32.const 1)
    (i32.const 4104))
  (i64.extend_i32_u (i32.load8_u (i32.const 4104))))

;; Renames a file of the folder, and returns whether the host refused.
(func $rename (param $to i32) (param $len i32) (result i64)
  (call $rename_at (call $folder) (i32.const 4227) (i32.const 3) (call $folder) (local.get $to) (local.get $len)
    (i32.const 4104))
  (i64.extend_i32_u (i32.load8_u (i32.const 4104))))

(func $run (param i32 i32) (result i32)
  (call $directories (i32.const 4096))
  ;; A link to the folder above. Only what leads through it must be refused.
  (call $symlink_at (call $folder) (i32.const 4200) (i32.const 2) (i32.const 4230) (i32.const 3) (i32.const 4104))
  (call $ok_number
    (i64.add (call $open (i32.const 4200) (i32.const 16) (i32.const 0))
    (i64.add (call $open (i32.const 4216) (i32.const 11) (i32.const 0))
    (i64.add (call $open (i32.const 4227) (i32.const 3) (i32.const 0))
    (i64.add (call $open (i32.const 4230) (i32.const 3) (i32.const 0))
    (i64.add (call $open (i32.const 4233) (i32.const 8) (i32.const 0))
    (i64.add (call $rename (i32.const 4200) (i32.const 16))
             (call $rename (i32.const 4216) (i32.const 11))))))))))
