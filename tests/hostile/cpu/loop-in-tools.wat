;; attack = 'A catalog that never returns.'
;; expect = 'refused(catalog)'

(func $tools (result i32)
  (loop $again (br $again))
  (unreachable))
