/// The source device, according to the backup. This is not proof.
public struct BackupDevice: Sendable, Hashable {
  /// The identifier (`UniqueDeviceID`), which is also the name of the backup's directory.
  public var identifier: String?
  /// The name that the owner chose. Untrusted, as is everything here.
  public var name: String?
  /// The product type, such as `iPhone15,2`.
  public var productType: String?
  /// The iOS version, such as `18.1`.
  public var productVersion: String?
  /// The build of iOS, such as `22B83`.
  public var buildVersion: String?
  /// The serial number.
  public var serialNumber: String?

  /// Creates a device with the known values.
  package init(
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

  /// Returns the device with missing values from another description of it.
  func completed(by other: BackupDevice?) -> BackupDevice {
    BackupDevice(
      identifier: identifier ?? other?.identifier, name: name ?? other?.name,
      productType: productType ?? other?.productType, productVersion: productVersion ?? other?.productVersion,
      buildVersion: buildVersion ?? other?.buildVersion, serialNumber: serialNumber ?? other?.serialNumber)
  }
}
