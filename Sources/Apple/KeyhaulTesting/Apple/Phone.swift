import Basics
@_exported public import KeychainServices

/// The phones of this module are on Linux: on Apple's systems `SecItemAdd` is Security's own and would write into the
/// keychain of the Mac that runs the test.
@available(
  *, unavailable, message: "virtual phones require Linux; here SecItemAdd would write to this Mac's own keychain"
)
public final class Phone: Sendable {
  /// Unavailable, as the type is.
  public init() throws {}
}
