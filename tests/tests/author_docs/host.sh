# Functions for the commands of a page: a host, calls of an agent, and ids.

# Starts the host, and returns when it is ready. Its data folder has its address and the admin's token.
start() {
    coproc HOST { exec toolgate serve --listen 127.0.0.1:0 2>> host.log; }
    exec 3<&"${HOST[0]}"
    local line=""
    while [[ $line != ready:* ]]; do
        read -r line <&3
    done
    cat <&3 >> host.log &
    url=$(cat toolgate-data/address)
}

stop() {
    local host=$HOST_PID
    kill "$host"
    wait "$host" || true
}

# A host reads its configuration when it starts.
configured() {
    if [[ -n ${HOST_PID:-} ]]; then
        stop
        start
    fi
}

# Submits one call of a tool, with this id.
submit() {
    local call="{\"type\": \"tool_use\", \"id\": \"$2\", \"name\": \"$1\", \"input\": {\"amount\": 7, \"to\": \"ann\"}}"
    echo "{\"role\": \"assistant\", \"content\": [$call]}" | toolgate submit - --conversation support:42 --token-file agent.token
}

# The id of the first suspension that waits.
waiting() {
    toolgate pending --json | sed -n '1s/^{"suspension":"\([^"]*\)".*/\1/p'
}

# The id of the newest turn.
turn() {
    toolgate turns support:42 --json | sed -n '1s/.*"turn":"\([^"]*\)".*/\1/p'
}

digest() {
    echo "sha256:$(sha256sum "$1" | cut -c 1-64)"
}

# The head of the audit, as a checkpoint.
checkpoint() {
    toolgate audit verify --json | sed 's/{"position":\([0-9]*\),"hash":"\([^"]*\)".*/\1:\2/'
}
