// With `import KeyhaulTesting`, tests get only the names of the library that they need. `Fate.swift` exports `Reason`.
@_exported public import KeychainServices
