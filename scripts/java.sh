#!/usr/bin/env bash
# Succeed when Spark will find Java 17 or newer; install Debian's headless runtime where that is allowed.
set -euo pipefail

least=17
package=openjdk-17-jre-headless

java_major() {
    local java=java
    if [[ -n ${JAVA_HOME:-} ]]; then java=$JAVA_HOME/bin/java; fi
    # Java 8 and older call themselves 1.8 and so on, and count as 1 here.
    "$java" -version 2>&1 | sed -n 's/.*version "\([0-9]*\).*/\1/p' | head -n 1
}

is_new_enough() {
    local major
    major=$(java_major 2>/dev/null || true)
    [[ -n $major && $major -ge $least ]]
}

# Prints how to become root; fails where this user may not.
as_root() {
    if [[ $(id -u) -eq 0 ]]; then
        echo env
    elif command -v sudo >/dev/null && sudo -n true 2>/dev/null; then
        echo sudo
    else
        return 1
    fi
}

refuse() {
    echo "java: Spark needs Java $least or newer, and $1." >&2
    echo "hint: install a Java runtime (Debian and Ubuntu: $package), or set JAVA_HOME to one." >&2
    exit 1
}

if is_new_enough; then exit 0; fi
if [[ -n ${JAVA_HOME:-} ]]; then refuse "JAVA_HOME=$JAVA_HOME does not hold one"; fi
command -v apt-get >/dev/null || refuse "there is no apt-get to install it with"
root=$(as_root) || refuse "this user may not install packages"
echo "java: installing $package"
$root apt-get update -qq >/dev/null || true
$root apt-get install -y -qq --no-install-recommends "$package" >/dev/null || refuse "apt-get could not install it"
is_new_enough || refuse "the installed one does not start"
