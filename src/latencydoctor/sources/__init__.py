"""Read-only edges: metrics, statistics, NVML, logs, bundles."""
