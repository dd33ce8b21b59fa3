;; attack = 'Escape sequences and direction marks in the log of a call.'
;; expect = 'escaped wherever a command prints it'
;; proven_by = ['tests/tests/commands/logs.rs::the_last_lines_of_a_call_are_shown_escaped']
;;
;; [[step]]
;; post = '/v1/conversations/$plugin-$round/turns?wait_ms=60000'
;; body = '{"calls":[{"id":"a","tool":"$tool","arguments":{}}]}'
;; status = [201]
;; keep = { turn = '/turn' }
;;
;; [[step]]
;; cli = ['logs', 'a', '--conversation', '$plugin-$round']
;; status = [0]
;; says = 'fine'
;; never = ["\u001b", "\u202e", "\u200b"]
;;
;; [[step]]
;; cli = ['logs', 'a', '--conversation', '$plugin-$round', '--json']
;; status = [0]
;; says = 'fine'
;; never = ["\u001b", "\u202e", "\u200b"]
;;
;; [[step]]
;; cli = ['show', '$turn', '--conversation', '$plugin-$round']
;; status = [0]
;; says = 'fine'
;; never = ["\u001b", "\u202e", "\u200b"]

(data (i32.const 4096) "\1b[2K\1b[1Afine\e2\80\ae001\e2\80\8b")

(func $run (param i32 i32) (result i32)
  (call $log (i32.const 1) (i32.const 4096) (i32.const 21))
  (call $ok_number (i64.const 1)))
