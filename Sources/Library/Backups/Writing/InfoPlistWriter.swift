import Basics
import KeychainFormats

/// The `Info.plist` of a backup, which the computer writes. Other readers require the device identifier in it.
///
/// Source: libimobiledevice, `idevicebackup2.c`.
struct InfoPlistWriter {
  private let contents: BackupContents
  private let guid: [UInt8]

  /// Creates the property list.
  ///
  /// - Parameter guid: 16 bytes that identify the backup to the computer.
  init(_ contents: BackupContents, guid: [UInt8]) {
    self.contents = contents
    self.guid = guid
  }

  func serialized() throws(KeyhaulError) -> [UInt8] {
    let device = contents.device
    var root: PropertyDictionary = [:]
    root["Applications"] = .dictionary(PropertyDictionary())
    root["Build Version"] = device.buildVersion.map { .string($0) }
    root["Device Name"] = device.name.map { .string($0) }
    root["Display Name"] = device.name.map { .string($0) }
    root["GUID"] = .string(String(hexadecimal: guid).uppercased())
    root["Installed Applications"] = .array(contents.applications.sorted().map { .string($0) })
    root["Last Backup Date"] = .date(contents.date)
    root["Product Type"] = device.productType.map { .string($0) }
    root["Product Version"] = device.productVersion.map { .string($0) }
    root["Serial Number"] = device.serialNumber.map { .string($0) }
    root["Target Identifier"] = device.identifier.map { .string($0) }
    root["Target Type"] = .string("Device")
    root["Unique Identifier"] = device.identifier.map { .string($0.uppercased()) }
    do throws(FormatError) {
      return try XMLPlist.encode(.dictionary(root))
    } catch {
      throw KeyhaulError(.unwritable, "\(MetadataFile.info.path): \(error.reason)")
    }
  }
}
