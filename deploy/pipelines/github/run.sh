#!/usr/bin/env bash
# One command of the action; its inputs are variables.
set -euo pipefail

if [[ -z ${FACTBOOK_TOKEN:-} ]]; then
    # Elsewhere a secret is missing by mistake: a gate that asks nothing would let all pass.
    if [[ $GITHUB_EVENT_NAME != pull_request ]]; then
        echo "::error title=Factbook::There is no token." >&2
        exit 2
    fi
    echo "::notice title=Factbook::There is no token, as for pull requests of forks: nothing was asked."
    exit 0
fi

# What `${NAME:+…}` leaves out is not given to the command.
case "$COMMAND" in
push)
    shopt -s globstar nullglob
    files=()
    while IFS= read -r pattern; do
        # Expanded as a pattern, and never split: names may hold blanks.
        IFS= matches=($pattern)
        if [[ -n $pattern ]] && ((${#matches[@]} == 0)); then
            echo "::error title=Factbook::No file fits $pattern." >&2
            exit 2
        fi
        files+=("${matches[@]}")
    done <<<"$FILES"
    factbook push ${MAX_REMOVALS:+"--max-removals=$MAX_REMOVALS"} -- "$SET" "${files[@]}"
    ;;
facts)
    facts=()
    while IFS= read -r fact; do
        [[ -z $fact ]] || facts+=("$fact")
    done <<<"$FACTS"
    factbook push-facts "--entity=$ENTITY" -- "$SOURCE" "${facts[@]}"
    ;;
preview)
    report=$RUNNER_TEMP/factbook-report.md
    status=0
    factbook checks preview "--path=$TREE" ${SET:+"--set=$SET"} --markdown >"$report" || status=$?
    cat -- "$report" >>"$GITHUB_STEP_SUMMARY"
    if [[ $COMMENT == true && $GITHUB_EVENT_NAME == pull_request && -s $report ]]; then
        factbook checks comment -- "$report"
    fi
    exit "$status"
    ;;
gate)
    factbook checks gate "--entity=$ENTITY" "--scorecard=$SCORECARD" "--level=$LEVEL"
    ;;
*)
    echo "::error title=Factbook::There is no command $COMMAND: push, facts, preview or gate." >&2
    exit 2
    ;;
esac
