import COpenSSL

/// Process-wide settings of OpenSSL.
package enum OpenSSL {
  /// Prevents OpenSSL's cleanup at exit, for a program that may exit while threads are running. Call it before any
  /// other use of OpenSSL.
  ///
  /// The cleanup runs in `exit`. A thread that has finished its work still frees its OpenSSL data afterwards, which
  /// would then be gone. The process's memory is freed anyway, and secrets are wiped by `SecretArena.wipeAll`.
  /// Source: OPENSSL_init_crypto(3), `OPENSSL_INIT_NO_ATEXIT`.
  package static func disableExitCleanup() { _ = OPENSSL_init_crypto(UInt64(OPENSSL_INIT_NO_ATEXIT), nil) }
}
