// What a test names comes with `import KeyhaulTesting`; nothing else of the library does. `Reason` comes with
// `Fate.swift`.
@_exported public import KeychainServices
