/// The authentication that an access control requires. Source: Apple `SecAccessControl.h`.
public struct SecAccessControlCreateFlags: OptionSet, Sendable, Hashable {
  /// Apple's number for the flags.
  public let rawValue: CFOptionFlags

  /// Creates flags from Apple's number.
  public init(rawValue: CFOptionFlags) { self.rawValue = rawValue }

  /// Biometry or the passcode.
  public static let userPresence = Self(rawValue: 1 << 0)
  /// Any enrolled biometry, including later enrollments.
  public static let biometryAny = Self(rawValue: 1 << 1)
  /// The former name of `biometryAny`.
  public static let touchIDAny = biometryAny
  /// The biometry that was enrolled when the item was created.
  public static let biometryCurrentSet = Self(rawValue: 1 << 3)
  /// The former name of `biometryCurrentSet`.
  public static let touchIDCurrentSet = biometryCurrentSet
  /// The device's passcode.
  public static let devicePasscode = Self(rawValue: 1 << 4)
  /// A paired device, such as a watch.
  public static let companion = Self(rawValue: 1 << 5)
  /// The former name of `companion`.
  public static let watch = companion
  /// A single constraint is sufficient.
  public static let or = Self(rawValue: 1 << 14)
  /// All constraints are required.
  public static let and = Self(rawValue: 1 << 15)
  /// Signing and key agreement with a private key.
  public static let privateKeyUsage = Self(rawValue: 1 << 30)
  /// An app-specific password.
  public static let applicationPassword = Self(rawValue: 1 << 31)
}
