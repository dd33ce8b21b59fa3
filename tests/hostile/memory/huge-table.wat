;; attack = 'A table that has four thousand million elements before anything runs.'
;; expect = 'refused(invalid-component)'
;; memory_mib = 64

(table $t 4294967295 funcref)
