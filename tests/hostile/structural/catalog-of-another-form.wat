;; attack = 'A plugin whose `tools` has another type than the interface.'
;; expect = 'refused(catalog)'

(component
  (core module $m (func (export "f") (result i32) (i32.const 42)))
  (core instance $i (instantiate $m))
  (func $f (result u32) (canon lift (core func $i "f")))
  (instance $catalog (export "tools" (func $f)))
  (export "toolgate:plugin/catalog@0.1.0" (instance $catalog)))
