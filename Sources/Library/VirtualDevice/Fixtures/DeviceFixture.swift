package import Basics
public import KeychainFormats

/// A description of a device and its keychain (format `device-fixture/1`), from which the same device can be created
/// repeatedly.
///
/// The passcode and the secrets in it are unencrypted. Do not use a fixture for real data.
public struct DeviceFixture: Sendable {
  /// The identifier of the format, as in a fixture and its schema.
  package static let format = "device-fixture/1"
  /// The largest accepted size of a fixture, in bytes.
  package static let maximumByteCount = 512 << 20

  /// An item and its access constraints.
  public struct Item: Sendable {
    /// The item with its protection class, its secret and, for a key in hardware, its token identifier.
    public var item: KeychainItem
    /// The authentication requirements; empty if the item needs no authentication.
    package var accessConstraints: [AccessConstraint]
  }

  /// The seed for the identifiers and keys of a device with published keys (`Keys.published`), together with the
  /// device's name.
  package var seed: Int64
  /// The date when the device was created, and the default date of its items.
  package var created: KeychainDate
  /// The default name of a device created from the fixture.
  public var name: DeviceName
  /// The model and the iOS version.
  package var identity: DeviceIdentity
  /// The passcode as UTF-8, or `nil` if the device has none.
  package var passcode: SensitiveBytes?
  /// The apps and their access groups.
  package var apps: [DeviceApp]
  /// The items in the order in which they are added.
  public var items: [Item]
}
