;; attack = "A caller reads the log of another caller's call, alone and with its turn."
;; expect = '404 for each'
;;
;; [[step]]
;; as = 'agent'
;; post = '/v1/conversations/$plugin-$round/turns?wait_ms=60000'
;; body = '{"calls":[{"id":"a","tool":"$tool","arguments":{}}]}'
;; status = [201]
;; keep = { turn = '/turn' }
;;
;; [[step]]
;; as = 'agent'
;; get = '/v1/conversations/$plugin-$round/calls/a/log'
;; status = [200]
;; says = 'private words'
;;
;; [[step]]
;; get = '/v1/conversations/$plugin-$round/calls/a/log'
;; status = [404]
;; never = ['private words']
;;
;; [[step]]
;; get = '/v1/conversations/$plugin-$round/turns/$turn?log=true'
;; status = [404]
;; never = ['private words']
;;
;; [[step]]
;; cli = ['logs', 'a', '--conversation', '$plugin-$round']
;; status = [1]
;; never = ['private words']

(data (i32.const 4096) "private words")

(func $run (param i32 i32) (result i32)
  (call $log (i32.const 1) (i32.const 4096) (i32.const 13))
  (call $ok_number (i64.const 1)))
