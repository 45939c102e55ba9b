#!/usr/bin/env bash
# How long `everytree fit` takes to end, with a model, after it was asked to: by --timeout, SIGTERM or SIGINT.
#
#   bash experiments/stops.sh EVERYTREE TABLE DEVICE > experiments/results/stops.csv
#
# TABLE: a folder of the Twenty Datasets, or a CSV file. A line has the seconds from the request to the end, the exit code, and
# whether there is a model that can be read.
set -u
program=$1 table=$2 device=$3
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
train=$table
[ -d "$table" ] && train=$table/$(basename "$table").train.data.gz
echo "# bash experiments/stops.sh everytree $(basename "$table") $device"
echo "table,device,family,how,asked_after_s,seconds_to_end,exit_code,model"
now() { date +%s.%N; }
for family in moat directed "hclt --hidden 64" auto; do
    for how in "timeout 1" "timeout 5" "TERM 4" "INT 4"; do
        read -r what after <<<"$how"
        rm -f "$folder"/*
        arguments=(fit "$train" --family $family --device "$device" --quiet --out "$folder/m.everytree")
        begin=$(now)
        if [ "$what" = timeout ]; then
            "$program" "${arguments[@]}" --timeout "${after}s" >/dev/null 2>&1
            code=$?
        else
            "$program" "${arguments[@]}" >/dev/null 2>&1 &
            child=$!
            sleep "$after"
            kill "-$what" "$child" 2>/dev/null
            wait "$child"
            code=$?
        fi
        seconds=$(awk "BEGIN { print $(now) - $begin - $after }")
        model=no
        [ -s "$folder/m.everytree" ] && "$program" inspect "$folder/m.everytree" >/dev/null 2>&1 && model=yes
        printf '%s,%s,%s,%s,%s,%.2f,%s,%s\n' "$(basename "$table")" "$device" "${family%% *}" "$what" "$after" "$seconds" "$code" "$model"
    done
done
