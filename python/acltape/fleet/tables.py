"""The tables of a folder of fleet tables, and their columns.

They are the tables of a trace (docs/schema.md, "Recorded: tables" and "How it is stored") without the contents of
tensors, with two additions: `stack_location` is a view in a trace and a table here, and `call_row` has the step of
each call. Each table has the columns `run` and `rank` besides, which the paths of its files tell; a trace's own column
`rank` is renamed therefore.
"""

# A word for each column: a whole number, or "name:text" or "name:real".
_WORDS = {
    "meta": "key:text value:text",
    "quirk": "name:text description:text",
    "ledger": "kind:text severity:text count subject:text cause:text remedy:text",
    "process": "process_id pid process_rank name:text",
    "thread": "thread_id process_id tid name:text",
    "op": "op_id dialect:text name:text overload:text schema:text",
    "layout": "layout_id dtype:text shape:text strides:text byte_offset format:text flags memory:text",
    "signature": "signature_id op_id",
    "signature_argument":
        "signature_id position name:text direction:text kind:text layout_id slot integer real:real text:text "
        "list:text",
    "call_row":
        "call_id signature_id thread_id parent_id scope_id bits begin_ns duration_ns buffers:text stack_id "
        "step",
    "call_extra": "call_id status stream_id stack_id prepare_ns launch_ns model_id forward_call",
    "buffer_row": "buffer_id address bytes alloc_call free_call flags alloc_ns life_ns block",
    "snapshot":
        "call_id position moment:text tensor_id digest:text bytes packing changed min:real max:real mean:real "
        "l2:real nan_count inf_count",
    "scope": "scope_id parent_id kind:text name:text path:text",
    "stack": "stack_id frames:text user_frame",
    "scope_range": "scope_id thread_id first_call last_call begin_ns end_ns",
    "stream": "stream_id process_id handle device flags create_call destroy_call",
    "event": "event_id process_id handle flags create_call destroy_call",
    "model": "model_id process_id handle mode:text begin_call end_call destroy_call",
    "recorded_window": "window_id process_id first_call last_call begin_ns end_ns",
    "device_span": "call_id stream_id begin_ns end_ns error_ns",
    "failure_text": "call_id text:text",
    "communicator": "communicator_id process_id handle name:text communicator_rank ranks",
    "step": "step first_call last_call found_by:text",
    "buffer_role": "buffer_id role:text pool:text",
    "dependency": "source_call target_call kind:text buffer_id first_byte last_byte",
    "finding": "finding_id rule:text severity:text call_id code message:text evidence:text verdict:text",
    "plan": "plan_id name:text options:text document:text",
    "region": "region_id plan_id kind:text first_call last_call reason:text",
    "placement": "plan_id call_id stream",
    "sync": "plan_id event record_call wait_call reason:text",
    "run": "run_id mode:text device:text plan_id options:text begin_ns end_ns exit_code",
    "sample": "run_id repetition step call_id region_id host_ns device_ns",
    "comparison": "run_id step call_id position metrics:text verdict:text",
    "witness": "witness_id kind:text options:text plan_id call_id position message:text verdict:text command:text",
    "table_total": "table_name:text rows",
    "signature_total": "signature_id calls first_call leaves total_ns min_ns max_ns",
    "thread_total": "thread_id calls leaves",
    "step_total": "step first_call last_call calls leaves wall_ns leaf_ns signatures backward_leaves breaks",
    "host_gap": "gap_ns thread_id after_call before_call",
    "barrier_rule": "op_name:text code reason:text",
    "stack_location": "stack_id file:text line function:text",
}
_TYPES = {"": "BIGINT", "real": "DOUBLE", "text": "VARCHAR"}


def _columns(words):
    pairs = (word.partition(":") for word in words.split())
    return {name: _TYPES[kind] for name, _, kind in pairs}


# By table: its columns in order, with their types in SQL.
TABLES = {table: _columns(words) for table, words in _WORDS.items()}

# By table: names of columns here and in a trace, where they differ.
RENAMED = {"process": {"process_rank": "rank"}, "communicator": {"communicator_rank": "rank"}}

# Tables whose files end at the end of a step, after about a million rows. Their paths tell the first step.
STEPPED = ("call_row", "call_extra", "snapshot", "device_span", "failure_text")
