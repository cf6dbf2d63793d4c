/// Apple's module name, for code that has `import LocalAuthentication`.
@_exported public import KeychainServices
