// Names that tests need are available with `import KeyhaulTesting`, and no others of the library. `Fate.swift` exports
// `Reason`.
@_exported public import KeychainServices
