"""YAML in, records out: rules, playbooks and configuration, with all errors at once and their places."""
