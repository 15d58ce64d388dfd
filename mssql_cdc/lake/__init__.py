"""The Delta tables of a connector: where they lie, how rows and progress get into them, what they say."""
