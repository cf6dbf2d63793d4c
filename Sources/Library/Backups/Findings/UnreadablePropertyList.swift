/// A property list beside the list of files that is there and cannot be read: `Status.plist` or `Info.plist`, without
/// which a backup opens all the same.
public struct UnreadablePropertyList: Sendable, Equatable {
  /// Of the file.
  public let name: String
  /// Why it cannot be read.
  public let error: BackupArchiveError

  init(_ part: StoredPart, _ error: BackupArchiveError) {
    name = part.path
    self.error = error
  }

  /// What is wrong with it, without its name in front.
  public var reason: String {
    error.reason.hasPrefix("\(name): ") ? String(error.reason.dropFirst(name.count + 2)) : error.reason
  }

  var note: ArchiveNote { .propertyListUnreadable(name: name, reason: reason) }
}
