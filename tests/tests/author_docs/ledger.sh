mkdir dist
cp "$REPOSITORY/plugins/target/wasm32-wasip2/release/ledger.wasm" dist
toolgate pack dist/ledger.wasm --manifest "$REPOSITORY/plugins/ledger/toolgate-plugin.toml"
