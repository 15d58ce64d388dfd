"""Tests of neutral changes becoming change-log rows."""
