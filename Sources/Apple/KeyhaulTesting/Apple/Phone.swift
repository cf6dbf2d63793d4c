@_exported public import KeychainServices

/// A placeholder, because the phones of this module require Linux. On Apple's systems, `SecItemAdd` is the function of
/// the Security framework and would write to the keychain of the Mac that runs the test.
@available(
  *, unavailable, message: "virtual phones require Linux; here SecItemAdd would write to this Mac's own keychain"
)
public final class Phone: Sendable {
  /// Not available.
  public init() throws {}
}
