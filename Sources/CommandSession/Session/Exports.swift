// Whoever speaks to a person lays out lines too.
@_exported public import TextLayout
