;; attack = 'A catalog that never comes.'
;; expect = 'refused(catalog)'

(func $tools (result i32)
  (loop $again (br $again))
  (unreachable))
