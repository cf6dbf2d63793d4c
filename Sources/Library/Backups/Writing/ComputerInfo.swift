import Basics
import KeychainFormats

/// A backup's `Info.plist`, which the computer writes. Other readers want the device's identifier from it.
///
/// Source: libimobiledevice, `idevicebackup2.c`.
struct ComputerInfo {
  private let contents: BackupContents
  private let guid: [UInt8]

  /// - Parameter guid: Sixteen bytes that identify this backup to the computer.
  init(_ contents: BackupContents, guid: [UInt8]) {
    self.contents = contents
    self.guid = guid
  }

  func serialized() throws(BackupArchiveError) -> [UInt8] {
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
      throw BackupArchiveError(.unwritable, "\(StoredPart.info.path): \(error.reason)")
    }
  }
}
