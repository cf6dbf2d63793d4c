internal import COpenSSL

/// OpenSSL with its legacy ciphers, if they are installed, because other systems encrypt PKCS#12 files with them.
enum OpenSSLContext {
  // Created once, and only passed to calls that lock it.
  nonisolated(unsafe) static let context: OpaquePointer? = {
    let context = OSSL_LIB_CTX_new()
    for provider in ["default", "legacy"] { _ = OSSL_PROVIDER_load(context, provider) }
    ERR_clear_error()
    return context
  }()
}
