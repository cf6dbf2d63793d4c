internal import COpenSSL

/// OpenSSL as a whole.
package enum CryptographicLibrary {
  /// Leaves OpenSSL as it is when the process ends, for a program that ends while threads may still be going: called before
  /// anything else asks OpenSSL for something.
  ///
  /// It would take itself apart in `exit`. A thread whose work is done and waited for still gives back what OpenSSL holds for
  /// it after that, and meets what is gone. What it has goes with the process; secrets of ours are wiped
  /// (`SecretArena.wipeAll`).
  /// Source: OPENSSL_init_crypto(3), `OPENSSL_INIT_NO_ATEXIT`.
  package static func staysUntilProcessEnds() { _ = OPENSSL_init_crypto(UInt64(OPENSSL_INIT_NO_ATEXIT), nil) }
}
