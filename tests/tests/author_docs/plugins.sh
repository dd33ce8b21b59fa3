
# Replaces `toolgate build`, which compiles. It takes the component that was built for the tests.
built() {
    local folder=${1:-.} name
    name=$(basename "$(realpath -m "$folder")")
    local source=$REPOSITORY/plugins/$name to=${3:-$folder/build/$name.wasm}
    mkdir -p "$(dirname "$to")"
    if [[ ! -e $source/Cargo.toml ]]; then
        cp "$source/build/$name.wasm" "$to"
        return
    fi
    cp "$REPOSITORY/plugins/target/wasm32-wasip2/release/$name.wasm" "$to"
    if [[ -e $source/toolgate-plugin.toml ]]; then
        toolgate pack "$to" --manifest "$source/toolgate-plugin.toml"
    fi
}

ln -s "$REPOSITORY/plugins/target" plugins/target
