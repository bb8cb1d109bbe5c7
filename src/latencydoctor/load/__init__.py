"""Open-loop load from a child process: requests go out on a schedule, whether or not earlier ones were answered."""
