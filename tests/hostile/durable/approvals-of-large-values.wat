;; attack = 'Asks in a loop for the approval of a value of 200 KB, eight calls at once.'
;; expect = 'failed(limit_exceeded)'
;; says = 'step_bytes'
;; options = '{"durable":true}'
;; settings = 'max_steps = 100'
;; at_once = 8
;; proven_by = ['host/domain/src/turn/tests/steps.rs::bytes_of_questions_and_answers_are_limited']

(import "toolgate:plugin/durable@0.1.2" "approve" (func $approve (param i32 i32 i32)))
(data (i32.const 4096) "{\"prompt\":\"Right?\",\"expires_ms\":1,\"subject\":\"")
(data (i32.const 4200) "\"}")

;; The question begins in new memory, and its value is 200,000 letters.
(func $run (param i32 i32) (result i32)
  (drop (memory.grow (i32.const 4)))
  (memory.copy (i32.const 131072) (i32.const 4096) (i32.const 45))
  (memory.fill (i32.const 131117) (i32.const 97) (i32.const 200000))
  (memory.copy (i32.const 331117) (i32.const 4200) (i32.const 2))
  (loop $again
    (call $approve (i32.const 131072) (i32.const 200047) (i32.const 200))
    (br $again))
  (unreachable))
