"""What a real SQL Server shows about the connector's statements: `make certify`."""
