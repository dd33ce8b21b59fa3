;; attack = 'A crash in a function whose name clears the terminal line and changes the text direction.'
;; expect = 'failed(trapped)'
;; never = ["\u001b", "\\u001b", "\\u0007"]
;; says = 'the tool crashed'

(func $deep (@name "\1b[2K\07\e2\80\ae paid") (unreachable))

(func $run (param i32 i32) (result i32)
  (call $deep)
  (unreachable))
