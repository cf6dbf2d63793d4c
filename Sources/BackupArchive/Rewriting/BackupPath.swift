/// What a file of a backup is by its path in the backup's folder.
enum BackupPath {
  /// Files with a name of their own, of every layout.
  static let parts = ["Manifest.plist", "Status.plist", "Info.plist", "Manifest.db", "Manifest.mbdb", "Manifest.mbdx"]

  /// Whether it belongs to a backup: a part, or a payload of the current layout or of that before iOS 10.
  static func isOwn(_ components: some BidirectionalCollection<Substring>) -> Bool {
    guard let last = components.last else { return false }
    switch components.count {
    case 1: return parts.contains(String(last)) || isFileIdentifier(last)
    case 2: return isFileIdentifier(last) && components.first == last.prefix(2)
    default: return false
    }
  }

  /// Whether payloads of the current layout lie in a folder of this name: the first two digits of their identifiers.
  static func isPayloadFolder(_ name: String) -> Bool {
    name.utf8.count == 2 && isFileIdentifier(name + String(repeating: "0", count: 38))
  }

  /// The path in the backup's folder, `nil` for what is no file of the backup's.
  ///
  /// - Parameter folder: The one around the backup's files, `""` for none.
  static func inside(_ folder: String, _ components: [Substring]) -> String? {
    guard folder.isEmpty || components.first == Substring(folder) else { return nil }
    let own = components.dropFirst(folder.isEmpty ? 0 : 1)
    return isOwn(own) ? own.joined(separator: "/") : nil
  }
}
