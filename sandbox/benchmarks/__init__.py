"""How fast the sandbox serves rows, takes changes and grows: `make bench ARGS=sandbox`."""
