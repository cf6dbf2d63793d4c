/// Apple's module name, for code that has `import Security` and `canImport(Security)`.
@_exported public import KeychainServices
