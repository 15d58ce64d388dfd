"""The whole way: sandbox, command line, lake, check."""
