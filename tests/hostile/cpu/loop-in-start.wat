;; attack = 'A start function that never ends; it runs before any call.'
;; expect = 'refused(catalog)'

(func $start (loop $again (br $again)))
(start $start)
