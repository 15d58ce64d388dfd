"""Tests of the conversion of neutral changes to change-log rows."""
