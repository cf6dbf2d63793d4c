/// What a new device shall be like.
public struct DeviceOptions: Sendable {
  public var identity: DeviceIdentity
  public var apps: [DeviceApp]
  /// After how many wrong passcodes in a row it erases itself; `nil` for never.
  public var eraseAfterFailures: Int?
  public var isSyncing: Bool
  /// Whether its hardware key is one that everybody can compute; the randomness it is made with decides that.
  var hasPublishedHardwareKey = false

  /// After how many failures iOS erases a device that is set to do so.
  public static let standardEraseAfterFailures = 10

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
