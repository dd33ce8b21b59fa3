;; attack = 'A destructor of a resource that never ends; it runs when the guest drops its own handle.'
;; expect = 'failed(out_of_time)'
;; says = '`limits.time_ms`'
;; limits = { time_ms = 300 }
;; world = '''
;;   export thing: interface { resource r { constructor(); } }
;; '''

(import "[export]thing" "[resource-new]r" (func $new (param i32) (result i32)))
(import "[export]thing" "[resource-drop]r" (func $drop (param i32)))

(func (export "thing#[constructor]r") (result i32)
  (call $new (i32.const 1)))

(func (export "thing#[dtor]r") (param i32)
  (loop $again (br $again)))

(func $run (param i32 i32) (result i32)
  (call $drop (call $new (i32.const 1)))
  (unreachable))
