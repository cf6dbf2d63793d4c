package import CommandSession

/// Where one backup is, of many that a call is about.
package struct BackupPlace: Sendable {
  package let path: String
  /// Why it cannot even be asked; `nil` for all that can.
  package let fault: CommandFailure?

  package init(_ path: String, fault: CommandFailure? = nil) {
    self.path = path
    self.fault = fault
  }

  /// What messages call it: the last part of its path.
  package var name: String { path.split(separator: "/").last.map(String.init) ?? path }
}

/// What was gone by on the way through folders, counted so that nothing is left out in silence.
package struct PassedOver: Equatable, Sendable {
  /// Links that were not followed.
  package var links = 0
  /// Files that are no backup in one file, as their names and first bytes say.
  package var files = 0
  /// Pipes, sockets and devices.
  package var specials = 0
  /// Names that begin with a dot.
  package var hidden = 0
  /// Names that are not UTF-8, which no argument can say.
  package var unnamed = 0
  /// Virtual devices and keychains that are no backups.
  package var keychains = 0

  package init() {}

  /// Each kind with how many there were, in words and as the name of a document's member.
  package var counts: [(name: String, noun: String, plural: String, count: Int)] {
    [
      ("links", "link", "links", links), ("files", "other file", "other files", files),
      ("special_files", "special file", "special files", specials),
      ("hidden", "hidden name", "hidden names", hidden),
      ("names_without_utf8", "name that is not UTF-8", "names that are not UTF-8", unnamed),
      ("keychains", "keychain of another kind", "keychains of another kind", keychains),
    ]
  }
}
