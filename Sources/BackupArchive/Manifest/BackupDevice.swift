/// The device that a backup was made from, as the backup itself says. Names it, proves nothing.
public struct BackupDevice: Sendable, Hashable {
  /// `UniqueDeviceID`, the identifier that names the backup's folder.
  public var identifier: String?
  public var name: String?
  /// Such as `iPhone15,2`.
  public var productType: String?
  /// Of iOS, such as `18.1`.
  public var productVersion: String?
  public var buildVersion: String?
  public var serialNumber: String?

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
