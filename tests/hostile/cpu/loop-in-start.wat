;; attack = 'A module whose start function never ends, which runs before anything is called.'
;; expect = 'refused(catalog)'

(func $start (loop $again (br $again)))
(start $start)
