"""Full-text search in a simple form: words of texts, and conditions on them.

There is no index: values are read when they are asked about, so that a query sees every change at once, where the real
server's index follows a little later. Word breaking is that of spaces and punctuation, inflection that of regular
English endings, the thesaurus is empty as on a new server, and ranks are a plain measure.
"""
