"""Text <-> syntax tree: the grammar (`gdsl.lark`, the language reference), parser, formatter.

The one entry is `gdsl.syntax.parse.parse`. Nothing here knows what a name means.
"""
