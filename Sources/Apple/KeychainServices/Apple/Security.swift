@_exported public import Security
