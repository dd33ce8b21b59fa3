;; attack = 'A table with four billion initial elements.'
;; expect = 'refused(invalid-component)'
;; memory_mib = 64

(table $t 4294967295 funcref)
