#!/bin/sh
# Restarts each unit whose heartbeat file, FOLDER/UNIT/beat, is older than a minute.
# A unit that has not written one yet is still starting, and is left alone.
find "${1:?which folder?}" -path '*/*/beat' -mmin +1 | while read -r beat; do
  unit=$(basename "$(dirname "$beat")")
  echo "$unit has not turned for a minute: restarting it"
  systemctl restart "$unit"
done
