;; attack = 'A memory that has 4 GiB before anything runs.'
;; expect = 'refused(catalog)'
;; memory_mib = 64

(memory (export "memory") 65536)
