#!/usr/bin/env bash
#
# Takes a snapshot of a directory tree. Files that did not change since the last snapshot are hard
# links, so that each snapshot is complete but only changes take space.
#
# Usage: snapshot.sh [-n] [-k COUNT] SOURCE TARGET

set -euo pipefail

readonly PROGRAM=${0##*/}
readonly STAMP=$(date +%Y-%m-%dT%H%M%S)

# Settings that options change
keep=14
dry_run=false

# Prints a message to standard error.
log() {
    printf '%s: %s\n' "$PROGRAM" "$*" >&2
}

# Prints a message and ends the program.
die() {
    log "$*"
    exit 1
}

usage() {
    cat <<USAGE
Usage: $PROGRAM [options] SOURCE TARGET

Options:
  -n        say what would be done, and do nothing
  -k COUNT  keep COUNT snapshots (default: $keep)
  -h        show this help

SOURCE must be a directory. TARGET is created if it does not exist.
USAGE
}

# The newest complete snapshot in a directory, or nothing.
#
# A snapshot whose name ends in .partial was interrupted and does not count.
newest_snapshot() {
    local target=$1
    find "$target" -mindepth 1 -maxdepth 1 -type d ! -name '*.partial' -printf '%f\n' \
        | sort \
        | tail -n 1
}

# Refuses to go on if the target lies inside the source: the snapshot would contain itself.
check_paths() {
    local source=$1 target=$2
    [[ -d $source ]] || die "not a directory: $source"
    source=$(realpath "$source")
    target=$(realpath -m "$target")
    case $target/ in
        "$source"/*) die "the target must not lie inside the source" ;;
    esac
}

# Copies the source, linking what is unchanged.
take_snapshot() {
    local source=$1 target=$2 last
    local -a options=(--archive --delete --numeric-ids)
    last=$(newest_snapshot "$target")
    if [[ -n $last ]]; then
        options+=(--link-dest "../$last")
        log "unchanged files are linked to $last"
    fi
    if $dry_run; then
        options+=(--dry-run --itemize-changes)
    fi
    # The trailing slash matters: rsync copies the contents, not the directory.
    rsync "${options[@]}" "$source/" "$target/$STAMP.partial/"
    $dry_run || mv "$target/$STAMP.partial" "$target/$STAMP"
}

# Removes all but the newest snapshots.
remove_old() {
    local target=$1 name
    find "$target" -mindepth 1 -maxdepth 1 -type d ! -name '*.partial' -printf '%f\n' \
        | sort -r \
        | tail -n +$((keep + 1)) \
        | while read -r name; do
            log "removing $name"
            $dry_run || rm -rf "${target:?}/$name"
        done
}

main() {
    local option
    while getopts nk:h option; do
        case $option in
            n) dry_run=true ;;
            k) keep=$OPTARG ;;
            h) usage; exit 0 ;;
            *) usage >&2; exit 2 ;;
        esac
    done
    shift $((OPTIND - 1))
    [[ $# -eq 2 ]] || { usage >&2; exit 2; }
    check_paths "$1" "$2"
    mkdir -p "$2"
    take_snapshot "$1" "$2"
    remove_old "$2"
}

main "$@"
