package import Basics
package import KeychainFormats

/// The `Manifest.plist` of a backup, with its keybag and source device.
///
/// Sources: published readers of iPhone backups (iphone_backup_decrypt, dunhamsteve/ios). Devices write a binary
/// property list.
package struct BackupManifest: Sendable {
  /// The version, `10.0` since iOS 10, or `nil` if it is missing.
  package var version: String?
  /// The date of the backup.
  package var date: KeychainDate?
  /// Whether the backup has a password, or `nil` if the manifest does not say. The keybag does not show it, because
  /// backups without a password have one too.
  package var isEncrypted: Bool?
  /// Whether the device had a passcode, or `nil` if this is unknown.
  package var wasPasscodeSet: Bool?
  /// The wrapped class keys, or none if there is a `keybagFault`.
  package var keybag: Keybag
  /// The reason why no keybag is readable, or `nil` if one is.
  package private(set) var keybagFault: String?
  /// The key of an encrypted manifest database: its class in 4 little-endian bytes, then the wrapped key.
  package var manifestKey: [UInt8]?
  /// The source device, as it describes itself.
  package var device: BackupDevice
  /// All other values of the property list.
  package var others: PropertyDictionary

  /// Creates a manifest for a new backup.
  package init(
    version: String? = "10.0", date: KeychainDate?, isEncrypted: Bool?, wasPasscodeSet: Bool?, keybag: Keybag,
    manifestKey: [UInt8]?, device: BackupDevice, others: PropertyDictionary = PropertyDictionary()
  ) {
    self.version = version
    self.date = date
    self.isEncrypted = isEncrypted
    self.wasPasscodeSet = wasPasscodeSet
    self.keybag = keybag
    self.manifestKey = manifestKey
    self.device = device
    self.others = others
  }

  /// The property list key that marks a decrypted copy.
  package static let copyKey = "DecryptedCopy"

  /// Whether the backup is a decrypted copy. Its keybag and its keychain items still require the original's password.
  package var isDecryptedCopy: Bool {
    isEncrypted == false && manifestKey == nil && others[Self.copyKey]?.booleanValue == true
  }

  /// Creates a manifest for a missing or unreadable `Manifest.plist`.
  ///
  /// - Parameter fault: The reason why the file cannot be read.
  init(unreadable fault: KeyhaulError) {
    self.init(
      version: nil, date: nil, isEncrypted: nil, wasPasscodeSet: nil, keybag: Keybag(), manifestKey: nil,
      device: BackupDevice())
    keybagFault = fault.reason
  }

  /// The layout according to the version, for a backup without a file list. The version is 10.0 since iOS 10.
  var expectedLayout: BackupLayout {
    let major = version.flatMap { Int($0.prefix { $0 != "." }) }
    return major.map { $0 < 10 } ?? false ? .mbdb : .manifestDB
  }

  /// The newest known major version. No device has written a newer one since 2016.
  private static let newestMajorVersion = 10

  /// Reads a `Manifest.plist`, binary or XML.
  ///
  /// A missing version and a missing or unreadable keybag are not errors, because the rest of the backup can be read
  /// without them.
  ///
  /// - Throws: `.damaged`, `.overLimit`, or `.unsupported` for an unknown version and for a backup of iPhone OS 3.
  package init(parsing bytes: [UInt8]) throws(KeyhaulError) {
    let part = MetadataFile.manifest.path
    var root = try rootDictionary(of: bytes, in: part)
    if root["AuthVersion"] != nil, root["BackupKeyBag"] == nil, root["Version"] == nil {
      throw Self.phoneOS3Error(part)
    }
    isEncrypted =
      switch root["IsEncrypted"] {
      case nil: nil
      case .boolean(let value): value
      case .integer(let value): value != 0
      default: throw KeyhaulError(.damaged, "\(part) does not say whether the backup is encrypted")
      }
    version = try Self.version(root["Version"], in: part)
    (keybag, keybagFault) = try Self.keybag(root["BackupKeyBag"], in: part)
    date = root["Date"]?.dateValue
    wasPasscodeSet = root["WasPasscodeSet"]?.booleanValue
    manifestKey = root["ManifestKey"]?.dataValue
    device = BackupDevice(lockdown: root["Lockdown"]?.dictionaryValue ?? PropertyDictionary())
    for key in ["IsEncrypted", "BackupKeyBag", "Version", "Date", "WasPasscodeSet", "ManifestKey"] { root[key] = nil }
    others = root
  }

  /// Returns the error for a backup of iPhone OS 2 or 3. The manifest of such a backup has a signature and no keybag.
  /// Each file in it is a pair of `.mddata` and `.mdinfo`.
  ///
  /// Source: descriptions of such folders by users of libimobiledevice and of iTunes Backup Explorer.
  private static func phoneOS3Error(_ part: String) -> KeyhaulError {
    KeyhaulError(
      .unsupported, "\(part) has an AuthVersion and no keybag, as before iOS 4",
      meaning: ErrorMeaning(
        .refused, "this is a backup of iPhone OS 3 or earlier, in a layout that is not read",
        advice: "a reader of that time, or a backup that a device with iOS 4 or later makes"))
  }

  private static func version(_ value: PropertyValue?, in part: String) throws(KeyhaulError) -> String? {
    let version: String
    switch value {
    case .string(let text): version = text
    case .integer(let number): version = "\(number)"
    case .real(let number): version = "\(number)"
    default: return nil
    }
    let major = version.prefix { $0 != "." }
    guard let number = Int(major), (1...newestMajorVersion).contains(number) else {
      throw KeyhaulError(.unsupported, "\(part) has version \(quoted(version)); 10.0 is the newest known")
    }
    return version
  }

  /// Returns the keybag. If it is missing or damaged, returns an empty keybag and the reason.
  ///
  /// - Throws: An error that is not of category `damaged`, such as `.overLimit` for a keybag that no device creates.
  private static func keybag(
    _ value: PropertyValue?, in part: String
  ) throws(KeyhaulError) -> (keybag: Keybag, fault: String?) {
    guard let bag = value?.dataValue else { return (Keybag(), "\(part) has no keybag") }
    do throws(KeyhaulError) {
      return (try translatingErrors(in: "the keybag") { () throws(FormatError) in try Keybag(parsing: bag) }, nil)
    } catch {
      guard error.category == .damaged else { throw error }
      return (Keybag(), error.reason)
    }
  }

  /// Returns the binary property list. Lockdown values that are not part of `device` are preserved.
  package func serialized() throws(KeyhaulError) -> [UInt8] {
    var root: PropertyDictionary = ["BackupKeyBag": .data(keybag.serialized())]
    root["Version"] = version.map { .string($0) }
    root["IsEncrypted"] = isEncrypted.map { .boolean($0) }
    root["Date"] = date.map { .date($0) }
    root["WasPasscodeSet"] = wasPasscodeSet.map { .boolean($0) }
    root["ManifestKey"] = manifestKey.map { .data($0) }
    var lockdown = others["Lockdown"]?.dictionaryValue ?? PropertyDictionary()
    device.write(to: &lockdown)
    root["Lockdown"] = .dictionary(lockdown)
    for entry in others.entries where entry.key != .string("Lockdown") { root.entries.append(entry) }
    return try encode(root, as: MetadataFile.manifest.path)
  }
}

extension BackupDevice {
  fileprivate init(lockdown: PropertyDictionary) {
    self.init(
      identifier: lockdown["UniqueDeviceID"]?.stringValue, name: lockdown["DeviceName"]?.stringValue,
      productType: lockdown["ProductType"]?.stringValue, productVersion: lockdown["ProductVersion"]?.stringValue,
      buildVersion: lockdown["BuildVersion"]?.stringValue, serialNumber: lockdown["SerialNumber"]?.stringValue)
  }

  fileprivate func write(to lockdown: inout PropertyDictionary) {
    lockdown["BuildVersion"] = buildVersion.map { .string($0) }
    lockdown["DeviceName"] = name.map { .string($0) }
    lockdown["ProductType"] = productType.map { .string($0) }
    lockdown["ProductVersion"] = productVersion.map { .string($0) }
    lockdown["SerialNumber"] = serialNumber.map { .string($0) }
    lockdown["UniqueDeviceID"] = identifier.map { .string($0) }
  }
}

/// Returns the root dictionary of a property list, binary or XML.
package func rootDictionary(of bytes: [UInt8], in part: String) throws(KeyhaulError) -> PropertyDictionary {
  let value = try translatingErrors(in: part) { () throws(FormatError) in
    XMLPlist.isXML(bytes) ? try XMLPlist.decode(bytes) : try BinaryPlist.decode(bytes)
  }
  guard let dictionary = value.dictionaryValue else {
    throw KeyhaulError(.damaged, "\(part) is not a dictionary")
  }
  return dictionary
}

/// Encodes a dictionary as a binary property list.
package func encode(_ dictionary: PropertyDictionary, as part: String) throws(KeyhaulError) -> [UInt8] {
  do throws(FormatError) {
    return try BinaryPlist.encode(.dictionary(dictionary))
  } catch {
    throw KeyhaulError(.unwritable, "\(part): \(error.reason)")
  }
}

/// The source device, according to the backup. Nothing proves these values.
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

  /// Returns the device, with its missing values from another description of the same device.
  func completed(by other: BackupDevice?) -> BackupDevice {
    BackupDevice(
      identifier: identifier ?? other?.identifier, name: name ?? other?.name,
      productType: productType ?? other?.productType, productVersion: productVersion ?? other?.productVersion,
      buildVersion: buildVersion ?? other?.buildVersion, serialNumber: serialNumber ?? other?.serialNumber)
  }
}
