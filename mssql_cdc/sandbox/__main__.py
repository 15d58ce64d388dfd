"""`python -m mssql_cdc.sandbox`: see command.py."""

import sys

from mssql_cdc.sandbox.command import main

sys.exit(main())
