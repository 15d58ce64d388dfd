"""The command line without a source: options, help, output, exit codes."""
