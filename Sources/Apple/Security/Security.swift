/// Apple's module by its own name, for code whose `import Security` and `canImport(Security)` stay as they are.
@_exported public import KeychainServices
