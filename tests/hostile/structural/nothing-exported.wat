;; attack = "A component that exports nothing but contains a plugin's names."
;; expect = 'refused(unknown-interface)'

(component
  (core module (func (export "toolgate:plugin/catalog@0.1.0#tools") (result i32) (i32.const 0))))
