;; attack = 'An external system sends a result with a secret of the plugin in it, and the guest logs it, asks a person about it, names the person by it and returns it.'
;; expect = 'each shows the name of the secret and not its value, and the call that names a person fails'
;; options = '{"durable":true}'
;; plugin.grants.secrets.token = { file = 'secret-in-a-result.txt', hosts = ['127.0.0.1'], places = ['header:authorization'] }
;; plugin.grants.http = [{ url = 'http://$server/', methods = ['GET'], private = true }]
;; files."secret-in-a-result.txt".text = 'job-token-0123456789'
;; proven_by = ['host/sandbox/tests/all/durable/questions.rs::secret_in_an_answer_is_redacted_in_all_a_guest_says']
;;
;; [[step]]
;; post = '/v1/conversations/$plugin-$round/turns?wait_ms=60000'
;; body = '{"calls":[{"id":"a","tool":"$tool","arguments":{}}]}'
;; status = [201]
;; keep = { turn = '/turn', suspension = '/pending/0/suspension' }
;;
;; [[step]]
;; post = '/v1/suspensions/$suspension/resolve'
;; body = '{"decision":"result","data":"sent job-token-0123456789"}'
;; status = [200]
;;
;; [[step]]
;; get = '/v1/conversations/$plugin-$round/turns/$turn?wait_ms=60000&until=quiet'
;; status = [200]
;; says = '"prompt":"sent [secret token]"'
;; never = ['job-token-0123456789']
;; keep = { question = '/pending/0/suspension' }
;;
;; [[step]]
;; as = 'alice'
;; post = '/v1/suspensions/$question/resolve'
;; body = '{"decision":"answer","data":1}'
;; status = [200]
;;
;; [[step]]
;; get = '/v1/conversations/$plugin-$round/turns/$turn?wait_ms=60000'
;; status = [200]
;; says = '"result":"sent [secret token]"'
;; never = ['job-token-0123456789']
;;
;; [[step]]
;; get = '/v1/conversations/$plugin-$round/calls/a/log'
;; status = [200]
;; says = 'sent [secret token]'
;; never = ['job-token-0123456789']
;;
;; [[step]]
;; get = '/v1/conversations/$plugin-$round/calls/a/journal'
;; status = [200]
;; never = ['job-token-0123456789']
;;
;; [[step]]
;; post = '/v1/conversations/$plugin-$round/turns?wait_ms=60000'
;; body = '{"calls":[{"id":"b","tool":"$tool","arguments":{"names":1}}]}'
;; status = [201]
;; keep = { turn = '/turn', suspension = '/pending/0/suspension' }
;;
;; [[step]]
;; post = '/v1/suspensions/$suspension/resolve'
;; body = '{"decision":"result","data":"principal:job-token-0123456789"}'
;; status = [200]
;;
;; [[step]]
;; get = '/v1/conversations/$plugin-$round/turns/$turn?wait_ms=60000'
;; status = [200]
;; says = 'the tool put a secret into `who` of a question'
;; never = ['job-token-0123456789']

(import "toolgate:plugin/durable@0.1.2" "await-external" (func $await_external (param i32 i32 i32)))
(import "toolgate:plugin/durable@0.1.2" "ask" (func $ask (param i32 i32 i32)))
(import "wasi:config/store@0.2.0-rc.1" "get" (func $config (param i32 i32 i32)))
(data (i32.const 4096) "{\"prompt\":\"The job ends\"}")
(data (i32.const 4200) "token")
(data (i32.const 5000) "{\"prompt\":")
(data (i32.const 6000) "{\"prompt\":\"Who?\",\"who\":[")

(func $run (param i32) (param $args_len i32) (result i32)
  (local $at i32)
  (local $len i32)
  ;; The guest has the placeholder of the secret.
  (call $config (i32.const 4200) (i32.const 5) (i32.const 200))
  (call $await_external (i32.const 4096) (i32.const 25) (i32.const 200))
  (local.set $at (i32.load (i32.const 204)))
  (local.set $len (i32.load (i32.const 208)))
  ;; With arguments, it names a person.
  (if (i32.gt_u (local.get $args_len) (i32.const 2))
    (then
      (memory.copy (i32.const 6024) (local.get $at) (local.get $len))
      (i32.store16 (i32.add (i32.const 6024) (local.get $len)) (i32.const 0x7d5d))
      (call $ask (i32.const 6000) (i32.add (i32.const 26) (local.get $len)) (i32.const 200))
      (unreachable)))
  (call $log (i32.const 1) (local.get $at) (local.get $len))
  (memory.copy (i32.const 5010) (local.get $at) (local.get $len))
  (i32.store8 (i32.add (i32.const 5010) (local.get $len)) (i32.const 125))
  (call $ask (i32.const 5000) (i32.add (i32.const 11) (local.get $len)) (i32.const 200))
  (call $ok (local.get $at) (local.get $len)))
