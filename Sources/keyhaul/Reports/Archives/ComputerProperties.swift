import Foundation

/// What `Info.plist` of a backup says of apps. Written by the computer, as XML or binary; read by Foundation, since
/// nothing but names in a report comes out of it.
struct ComputerProperties {
  /// Identifiers of the apps that were installed.
  let installed: [String]
  /// Names from the store, by identifier.
  let storeNames: [String: String]

  /// More than any real one has, in bytes; a longer one is not read for the sake of names.
  static let largestByteCount = 64 << 20

  /// - Returns: `nil` for what is no property list.
  init?(_ bytes: [UInt8]) {
    guard bytes.count <= Self.largestByteCount, let root = Self.dictionary(Data(bytes)) else { return nil }
    installed = (root["Installed Applications"] as? [Any] ?? []).compactMap { $0 as? String }
    var names: [String: String] = [:]
    for (identifier, value) in root["Applications"] as? [String: Any] ?? [:] {
      guard let metadata = (value as? [String: Any])?["iTunesMetadata"] as? Data else { continue }
      guard let name = Self.dictionary(metadata)?["itemName"] as? String, !name.isEmpty else { continue }
      names[identifier] = name
    }
    storeNames = names
  }

  private static func dictionary(_ data: Data) -> [String: Any]? {
    (try? PropertyListSerialization.propertyList(from: data, format: nil)) as? [String: Any]
  }
}
