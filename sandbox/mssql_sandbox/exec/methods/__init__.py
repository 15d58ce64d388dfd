"""Methods of values: those of xml and of hierarchyid."""
