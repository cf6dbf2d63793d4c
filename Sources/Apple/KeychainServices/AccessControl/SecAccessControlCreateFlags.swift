/// What an item with access control asks of the person. Source: Apple `SecAccessControl.h`.
public struct SecAccessControlCreateFlags: OptionSet, Sendable, Hashable {
  public let rawValue: CFOptionFlags

  public init(rawValue: CFOptionFlags) { self.rawValue = rawValue }

  /// Biometry or the passcode, as the person likes.
  public static let userPresence = Self(rawValue: 1 << 0)
  /// A biometry that is enrolled, now or later.
  public static let biometryAny = Self(rawValue: 1 << 1)
  /// The former name of `biometryAny`.
  public static let touchIDAny = biometryAny
  /// A biometry that was enrolled when the item was made, and no other since.
  public static let biometryCurrentSet = Self(rawValue: 1 << 3)
  /// The former name of `biometryCurrentSet`.
  public static let touchIDCurrentSet = biometryCurrentSet
  /// The device's passcode.
  public static let devicePasscode = Self(rawValue: 1 << 4)
  /// A paired device, such as a watch.
  public static let companion = Self(rawValue: 1 << 5)
  /// The former name of `companion`.
  public static let watch = companion
  /// One of the constraints suffices.
  public static let or = Self(rawValue: 1 << 14)
  /// All of the constraints are needed.
  public static let and = Self(rawValue: 1 << 15)
  /// Signing and key agreement with a private key.
  public static let privateKeyUsage = Self(rawValue: 1 << 30)
  /// A password of the app's own.
  public static let applicationPassword = Self(rawValue: 1 << 31)
}
