/// What a new device shall be like.
public struct DeviceOptions: Sendable {
  /// The model and the version of iOS.
  public var identity: DeviceIdentity
  /// The installed apps, with their access groups.
  public var apps: [DeviceApp]
  /// After how many wrong passcodes in a row it erases itself; `nil` for never.
  public var eraseAfterFailures: Int?
  /// True where iCloud Keychain is on: a deleted synchronized item leaves a tombstone then.
  public var isSyncing: Bool
  /// Whether its hardware key is one that everybody can compute; the randomness it is made with decides that.
  var hasPublishedHardwareKey = false

  /// After how many failures iOS erases a device that is set to do so.
  public static let standardEraseAfterFailures = 10

  /// Creates options; by default an iPhone without apps that never erases itself and does not synchronize.
  public init(
    identity: DeviceIdentity = DeviceIdentity(), apps: [DeviceApp] = [], eraseAfterFailures: Int? = nil,
    isSyncing: Bool = false
  ) {
    self.identity = identity
    self.apps = apps
    self.eraseAfterFailures = eraseAfterFailures
    self.isSyncing = isSyncing
  }
}
