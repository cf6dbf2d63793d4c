/// What a file of a backup is by its path in the backup's directory.
package enum BackupPath {
  /// Files with a name of their own, of every layout.
  package static let parts = [
    "Manifest.plist", "Status.plist", "Info.plist", "Manifest.db", "Manifest.db-wal", "Manifest.db-journal",
    "Manifest.mbdb", "Manifest.mbdx",
    "Keyhaul.seal",
  ]

  /// Whether it belongs to a backup: a part, or a payload of the current layout or of that before iOS 10.
  package static func isOwn(_ components: some BidirectionalCollection<Substring>) -> Bool {
    guard let last = components.last else { return false }
    return components.count == 1 && parts.contains(String(last)) || payload(at: components) != nil
  }

  /// The identifier of the payload that a path names, in a directory named after its first two digits or in none. File
  /// systems and tools fold names, so that capitals count for nothing.
  ///
  /// - Returns: `nil` for a path that names no payload.
  static func payload(at components: some BidirectionalCollection<some StringProtocol>) -> String? {
    guard let last = components.last, last.utf8.count == 40 else { return nil }
    let identifier = isFileIdentifier(last) ? String(last) : last.lowercased()
    guard isFileIdentifier(identifier) else { return nil }
    switch components.count {
    case 1: return identifier
    case 2: return components.first.map { $0.lowercased() } == String(identifier.prefix(2)) ? identifier : nil
    default: return nil
    }
  }

  /// The same of a path in the backup's directory.
  package static func payload(at path: String) -> String? { payload(at: path.split(separator: "/")) }

  /// Whether payloads of the current layout lie in a directory of this name: the first two digits of their identifiers,
  /// capitals too.
  package static func isPayloadDirectory(_ name: String) -> Bool {
    name.utf8.count == 2 && isFileIdentifier(name.lowercased() + String(repeating: "0", count: 38))
  }

  /// The path in the backup's directory, `nil` for what is not a file of the backup's.
  ///
  /// - Parameter directory: The one around the backup's files, empty for none.
  package static func inside(_ directory: EntryName, _ path: EntryPath) -> String? {
    guard directory.isEmpty || path.components.first == directory.bytes else { return nil }
    let own = path.components.dropFirst(directory.isEmpty ? 0 : 1)
    guard own.count <= 2, own.allSatisfy({ $0.allSatisfy { $0 < 0x80 } }) else { return nil }
    let texts = own.map { Substring(decoding: $0, as: UTF8.self) }
    return isOwn(texts) ? texts.joined(separator: "/") : nil
  }
}
