;; attack = 'Grows a table by ten million elements.'
;; expect = 'failed(limit_exceeded)'
;; says = '`limits.table_elements`'

(table $t 10 funcref)

(func $run (param i32 i32) (result i32)
  (if (i32.eq (table.grow $t (ref.null func) (i32.const 10000000)) (i32.const -1)) (then (unreachable)))
  (call $ok_number (i64.const 1)))
