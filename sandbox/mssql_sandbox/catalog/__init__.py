"""System views, catalogue procedures and metadata functions of the sandbox."""
