"""End-to-end tests: sandbox, command line, lake, check."""
