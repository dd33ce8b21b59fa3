;; attack = 'A memory of 4 GiB initially.'
;; expect = 'refused(catalog)'
;; memory_mib = 64

(memory (export "memory") 65536)
