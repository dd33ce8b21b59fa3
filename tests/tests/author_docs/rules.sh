mkdir rules
cat > rules/pay.toml << 'END'
[[policy]]
name = "nobody-pays-eve"
tools = "pay"
rule = "deny"
arguments = [{ pointer = "/to", equals = "eve" }]
match = [{ tool = "pay", arguments = { to = "eve" } }]
END
start
