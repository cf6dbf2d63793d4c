/// The device that a backup was made from, as the backup itself says. Names it, proves nothing.
public struct BackupDevice: Sendable, Hashable {
  /// `UniqueDeviceID`, the identifier that names the backup's directory.
  public var identifier: String?
  /// The name that its owner gave it; hostile, as is everything here.
  public var name: String?
  /// Such as `iPhone15,2`.
  public var productType: String?
  /// Of iOS, such as `18.1`.
  public var productVersion: String?
  /// The build of iOS, such as `22B83`.
  public var buildVersion: String?
  /// The serial number.
  public var serialNumber: String?

  /// Creates a device of what is known of it.
  public init(
    identifier: String? = nil, name: String? = nil, productType: String? = nil, productVersion: String? = nil,
    buildVersion: String? = nil, serialNumber: String? = nil
  ) {
    self.identifier = identifier
    self.name = name
    self.productType = productType
    self.productVersion = productVersion
    self.buildVersion = buildVersion
    self.serialNumber = serialNumber
  }

  func completed(by other: BackupDevice?) -> BackupDevice {
    BackupDevice(
      identifier: identifier ?? other?.identifier, name: name ?? other?.name,
      productType: productType ?? other?.productType, productVersion: productVersion ?? other?.productVersion,
      buildVersion: buildVersion ?? other?.buildVersion, serialNumber: serialNumber ?? other?.serialNumber)
  }
}
