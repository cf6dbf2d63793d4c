// With `import KeyhaulTesting`, tests get the names that they need, but no others of the library. `Fate.swift` exports
// `Reason`.
@_exported public import KeychainServices
