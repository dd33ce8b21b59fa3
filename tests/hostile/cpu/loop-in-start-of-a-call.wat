;; attack = 'A start function that ends while the catalog is read and never ends in a call: it tests for data that only a call has.'
;; expect = 'failed(out_of_time)'
;; says = '`limits.time_ms`'
;; limits = { time_ms = 300 }
;; # The catalog is read with little memory, a call has more: so the guest tells the two apart.

(func $start
  (if (i32.ne (memory.grow (i32.const 1500)) (i32.const -1))
    (then (loop $again (br $again)))))
(start $start)
