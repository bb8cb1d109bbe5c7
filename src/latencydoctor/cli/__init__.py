"""The command line: parse, wire, call, render, exit."""
