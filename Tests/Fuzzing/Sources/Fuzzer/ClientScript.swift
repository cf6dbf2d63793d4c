import Basics
import DeviceServer
import KeychainFormats
import KeyhaulKit

/// The messages of a client for complete requests, sent without waiting for the device.
enum ClientScript {
  private static func status(_ code: Int64 = 0, _ value: PropertyValue = .dictionary([:])) throws -> [UInt8] {
    try DeviceLink.frame("DLMessageStatusResponse", [.integer(code), .string(DeviceLink.emptyParameter), value])
  }

  /// Returns a client's answer to the request for a file: the name, blocks, a length of 0, and a status.
  ///
  /// - Parameter bytes: The content of the file, or `nil` if the client reports that the file is missing.
  private static func file(_ path: String, _ bytes: [UInt8]?) throws -> [UInt8] {
    let name = DeviceLink.lengthAndBytes(Array(path.utf8))
    guard let bytes else {
      return name + DeviceLink.block(.localError, Array("No such file".utf8)) + [0, 0, 0, 0]
        + (try status(HostStatus.several))
    }
    return name + DeviceLink.block(.data, bytes) + DeviceLink.block(.success) + [0, 0, 0, 0] + (try status())
  }

  /// Returns all messages of a client that makes a request: the greeting, the request, its responses, and the end.
  private static func request(
    _ name: String, _ options: PropertyDictionary = [:], then responses: [[UInt8]]
  ) throws -> [UInt8] {
    var request: PropertyDictionary = [
      "MessageName": .string(name), "TargetIdentifier": .string(FuzzedPhone.shared.device.udid),
    ]
    request.entries += options.entries
    let hello: PropertyDictionary = [
      "MessageName": .string("Hello"), "SupportedProtocolVersions": .array([.real(2.0), .real(2.1)]),
    ]
    var messages = try DeviceLink.frame("DLMessageVersionExchange", [.string("DLVersionsOk"), .integer(300)])
    messages += try DeviceLink.frame("DLMessageProcessMessage", [.dictionary(hello)])
    messages += try DeviceLink.frame("DLMessageProcessMessage", [.dictionary(request)])
    messages += responses.joined()
    messages += try DeviceLink.frame("DLMessageDisconnect", [.string(DeviceLink.emptyParameter)])
    return messages
  }

  /// Returns the messages for each kind of request. The responses fit the device that `FuzzedPhone` serves.
  static func all() throws -> [[UInt8]] {
    let udid = FuzzedPhone.shared.device.udid
    let sourceID = "4C1F0A2B-9D3E5F60718293A4"
    let source: PropertyDictionary = ["SourceIdentifier": .string(sourceID)]
    let keychainFile: PropertyDictionary = [
      "SourceIdentifier": .string(sourceID), "DomainName": .string("KeychainDomain"),
      "RelativePath": .string("keychain-backup.plist"),
    ]
    let files = SampleFolder.shared.files
    func storedFiles(_ names: [String]) throws -> [[UInt8]] {
      try names.map { try file("\(sourceID)/\($0)", files[$0]) }
    }
    func missingFiles(_ names: [String]) throws -> [[UInt8]] { try names.map { try file("\(udid)/\($0)", nil) } }
    func statuses(_ count: Int) throws -> [[UInt8]] { try (0..<count).map { _ in try status() } }

    let manifestNames = ["Status.plist", "Manifest.plist", "Manifest.db"]
    let manifests = try storedFiles(manifestNames)
    let keychainName = "51/51a4616e576dd33cd2abadfea874eb8ff246bf0e"
    let freeSpace = try status(0, .integer(1 << 40))
    return [
      // The 13 statuses are for four directories, four states of the backup, two uploads, two moves and a removal.
      try request("Backup", then: missingFiles(["Status.plist"]) + [freeSpace] + statuses(13)),
      try request("Restore", source, then: storedFiles(manifestNames + ["Info.plist", keychainName])),
      try request(
        "ChangePassword", ["NewPassword": .string("new")],
        then: missingFiles(["Snapshot/Manifest.plist", "Manifest.plist"])),
      try request("Info", source, then: manifests), try request("List", source, then: manifests),
      try request("Unback", source, then: manifests + statuses(4)),
      try request("Extract", keychainFile, then: manifests + statuses(1)),
    ]
  }
}
