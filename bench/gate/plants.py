"""The changes that program.py can make, by device. trust.py expects a gate to find each of them."""

PLANTS = {
    "cpu": ("host_read", "copy", "graph", "launch", "larger_tensor", "argument", "finding", "operator_less", "memory",
            "moving_input"),
    "npu": ("host_read", "copy", "graph", "lost_capture", "stream", "launch", "larger_tensor", "argument", "finding",
            "execution_less"),
}
