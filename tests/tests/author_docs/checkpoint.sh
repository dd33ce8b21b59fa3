# One turn is removed, which signs a checkpoint, and one is kept.
printf '[retention]\nturns_bytes = 1\nturns_bytes_minutes = 0\n' > toolgate.toml
start
submit pay call_0
stop
toolgate store prune
rm toolgate.toml
start
submit pay call_1
stop
cp -r toolgate-data stopped
start
key=$(toolgate status | sed -n 's/.*\(ed25519:[^ ]*\).*/\1/p')
