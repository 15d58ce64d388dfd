"""`python -m mssql_sandbox`: see command.py."""

import sys

from mssql_sandbox.command import main

sys.exit(main())
