"""The harness of the benchmarks: tasks and tools, cells in processes of their own, results and how they are shown."""
