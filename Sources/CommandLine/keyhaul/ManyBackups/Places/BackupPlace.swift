/// Where one backup is, of many that a call is about.
struct BackupPlace: Sendable {
  let path: String
  /// Why it cannot even be asked; `nil` for all that can.
  let fault: CommandFailure?

  init(_ path: String, fault: CommandFailure? = nil) {
    self.path = path
    self.fault = fault
  }

  /// What messages call it: the last part of its path.
  var name: String { path.split(separator: "/").last.map(String.init) ?? path }
}

/// What was gone by on the way through folders, counted so that nothing is left out in silence.
struct PassedOver: Equatable, Sendable {
  /// Links that were not followed.
  var links = 0
  /// Files that are no backup in one file, as their names and first bytes say.
  var files = 0
  /// Pipes, sockets and devices.
  var specials = 0
  /// Names that begin with a dot.
  var hidden = 0
  /// Names that are not UTF-8, which no argument can say.
  var unnamed = 0
  /// Virtual devices and keychains that are no backups.
  var keychains = 0

  init() {}

  /// Each kind with how many there were, in words and as the name of a document's member.
  var counts: [(name: String, noun: String, plural: String, count: Int)] {
    [
      ("links", "link", "links", links), ("files", "other file", "other files", files),
      ("special_files", "special file", "special files", specials),
      ("hidden", "hidden name", "hidden names", hidden),
      ("names_without_utf8", "name that is not UTF-8", "names that are not UTF-8", unnamed),
      ("keychains", "keychain of another kind", "keychains of another kind", keychains),
    ]
  }
}
