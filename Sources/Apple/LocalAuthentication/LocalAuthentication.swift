/// Apple's module by its own name, for code whose `import LocalAuthentication` stays as it is.
@_exported public import KeychainServices
