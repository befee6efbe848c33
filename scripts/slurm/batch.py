"""The text of a submission's batch scripts: one for the tasks of the array, one for the merge.

They are plain bash with every user word quoted, so that a person can read them and run them by hand.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path

# A task measures on its node's own disk, because SQLite is not reliable over NFS, and publishes by copy and rename.
# It publishes the union of its results and those already published: if a controller that lost its state starts a shard
# twice, neither task overwrites results of the other. Published files are read-only, so that SQLite reads them without
# locks or logs. The task counts finished cells on the machine that measured, because a timing is valid only there. The
# count names the file that it belongs to, so that it is never applied to another file.
TASK = """\
#!/usr/bin/env bash
# One task of {name}: the shard that SLURM_ARRAY_TASK_ID says. Written by scripts/slurm/submit.py; see docs/cluster.md.
set -uo pipefail

program={program}
shard=$SLURM_ARRAY_TASK_ID/{tasks}
shared={folder}/shards/$SLURM_ARRAY_TASK_ID
scratch=$(mktemp -d) || exit  # in TMPDIR
results=$scratch/shard.db
running='' stopped='' due='' failed=0
part=$shared.$(hostname).$$

# every FUNCTION: for each plan of this submission.
every() {{
{calls}
}}

publish() {{
  local known=() whole=$scratch/whole.db identity
  [ -e "$results" ] || return 0
  [ ! -e "$shared.db" ] || known=("$shared.db")
  rm -f "$whole"*
  "$program" merge "$whole" "$results" ${{known[@]+"${{known[@]}}"}} > /dev/null &&
    every count > "$scratch/count" && cp "$whole" "$part" && sync "$part" && chmod a-w "$part" &&
    identity=$(stat --format='%i %s %Y' "$part") && mv -f "$part" "$shared.db" &&
    {{ echo "$identity"; cat "$scratch/count"; }} > "$part" && mv -f "$part" "$shared.count"
}}

count() {{
  "$program" plan "$@" --shard "$shard" --results "$scratch/whole.db"
}}

stop() {{
  echo "told to stop" >&2  # the signal may come while publish writes its output into a file
  stopped=1 due=1  # what runs may need longer to end than Slurm waits, so what there is is published at once
  [ -z "$running" ] || kill "$running"
}}

measure() {{
  [ -z "$stopped" ] || return 0
  "$program" run "$@" --shard "$shard" --results "$results" &
  running=$!
  while kill -0 "$running" 2> /dev/null; do
    wait "$running"  # ends early at every signal
    [ -z "$due" ] || {{ due='' && publish; }}
  done
  wait "$running" || failed=1
  running=''
}}

echo "== $(date -u +%FT%TZ) shard $shard, job ${{SLURM_ARRAY_JOB_ID}}_$SLURM_ARRAY_TASK_ID, $(hostname)," \\
  "restarts ${{SLURM_RESTART_COUNT:-0}}"
trap stop TERM INT
trap 'due=1' USR1
(trap 'kill $!' TERM; while sleep {publish} & wait $!; do kill -USR1 $$; done) &
clock=$!
trap 'kill "$clock" 2> /dev/null; rm -rf "$scratch" "$part"' EXIT
if [ -e "$shared.db" ]; then
  cp "$shared.db" "$results" && chmod u+w "$results" || exit
fi
every measure
publish || failed=1
exit "$failed"
"""

# Every merge rebuilds the merged file from all shards, so that no result counts twice, even if several merges run.
MERGE = """\
#!/usr/bin/env bash
# Unites what the tasks of {name} have published. Written by scripts/slurm/submit.py; does no harm at any time.
set -euo pipefail
shopt -s nullglob

program={program}
folder={folder}
shards=("$folder"/shards/*.db)
if [ ${{#shards[@]}} -eq 0 ]; then
  echo "no task has published anything yet" >&2
  exit 1
fi
scratch=$(mktemp -d)
part=$folder/results.db.$(hostname).$$
trap 'rm -rf "$scratch" "$part"' EXIT
# Before they are read: what is replaced meanwhile then counts as not merged.
stat --format='%n %i %s %Y' "${{shards[@]}}" > "$scratch/of"
"$program" merge "$scratch/results.db" "${{shards[@]}}"
"$program" verify "$scratch/results.db"
cp "$scratch/results.db" "$part"
sync "$part"
chmod a-w "$part"
mv -f "$part" "$folder/results.db"
cp "$scratch/of" "$part"
mv -f "$part" "$folder/results.of"
"""


def task_script(
    name: str, program: Path, folder: Path, tasks: int, plans: Sequence[Sequence[str]], publish: int
) -> str:
    """plans: for each `attnbench run`, its arguments. publish: seconds between copies."""
    return TASK.format(
        name=name,
        program=shlex.quote(str(program)),
        folder=shlex.quote(str(folder)),
        tasks=tasks,
        publish=publish,
        calls=" &&\n".join('  "$1" ' + shlex.join(plan) for plan in plans),
    )


def merge_script(name: str, program: Path, folder: Path) -> str:
    return MERGE.format(name=name, program=shlex.quote(str(program)), folder=shlex.quote(str(folder)))
