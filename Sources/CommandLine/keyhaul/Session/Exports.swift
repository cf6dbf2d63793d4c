// Whoever speaks to a person lays out lines too.
@_exported import KeyhaulKit
