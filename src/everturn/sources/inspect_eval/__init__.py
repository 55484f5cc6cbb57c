"""Inspect: logs of evaluations, as `.eval` archives or JSON; every sample is a session."""

from __future__ import annotations

from everturn.sources.contract import Source, lazy_imports, named_folders, no_workspace

SOURCE = Source(
    name="inspect_eval",
    title="Inspect logs",
    parser=1,
    fields=("eval", "plan", "samples", "epoch", "target", "model_usage", "scores", "eval_id", "task_id", "run_id"),
    roots=named_folders("inspect_eval", "$INSPECT_LOG_DIR", "{working}/logs"),
    option="inspect-dir",
    is_placeless=True,
    workspace=no_workspace,
    **lazy_imports("everturn.sources.inspect_eval.reader", "find", "sniff", "view", "reader", "unpack"),
)
