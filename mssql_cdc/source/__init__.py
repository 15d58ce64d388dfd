"""Reading sources: the protocol in neutral words, and one package per kind of source."""
