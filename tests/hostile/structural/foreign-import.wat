;; attack = "A plugin that imports another host's interface."
;; expect = 'refused(import-not-granted)'
;; says = 'evil:corp/door@1.0.0'

(component
  (import "evil:corp/door@1.0.0" (instance (export "open" (func))))
  (core module $m
    (memory (export "memory") 1)
    (func (export "tools") (result i32) (i32.const 16)))
  (core instance $i (instantiate $m))
  (type $tool (record
    (field "name" string) (field "description" string) (field "parameters" string)
    (field "executor" (enum "server" "human" "client" "provider"))
    (field "approval" (enum "auto" "requires-approval"))
    (field "streaming" bool) (field "options" string)))
  (component $catalog)
  (instance $catalog (instantiate $catalog))
  (export "toolgate:plugin/catalog@0.1.0" (instance $catalog)))
