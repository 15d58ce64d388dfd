"""Change data capture of the sandbox: capture job, cleanup job, procedures, functions, change tables."""
