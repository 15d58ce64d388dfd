"""Where the effects of properties are seen: each function runs a part of the product and says what it did.

`test_every_property.py` compares what they say with and without a property.
"""
