import KeyhaulKit

/// What the arguments of a call about many backups name, one place after the other, in the order of the arguments and of the
/// list; a folder stands for the backups in it.
final class BackupPlaces {
  private var arguments: ArraySlice<String>
  private let list: PathList?
  private var walk: (folder: String, walk: BackupFinder, isEmpty: Bool)?
  private var before = PassedOver()

  init(_ arguments: [String], list: PathList?) {
    self.arguments = arguments[...]
    self.list = list
  }

  /// The backups in a folder that is not a backup itself, as far as an argument's meaning depends on them.
  enum Content: Equatable {
    /// No backups, or not such a folder.
    case none
    /// One backup, at this path.
    case one(String)
    /// Several backups, or one beside a folder that cannot be read.
    case several
  }

  static func content(of path: String) throws(CommandFailure) -> Content {
    guard isFolder(path) else { return .none }
    let walk = BackupFinder(path)
    var found: String?
    var hasFault = false
    while let place = try walk.next() {
      // What cannot be read has a row of its own among the backups of the folder.
      guard place.fault == nil else {
        hasFault = true
        continue
      }
      guard found == nil, !hasFault else { return .several }
      found = place.path
    }
    guard let found else { return .none }
    return hasFault ? .several : .one(found)
  }

  /// Whether a path is a folder with backups in it, and not a backup itself.
  static func areBackups(in path: String) throws(CommandFailure) -> Bool { try content(of: path) != .none }

  private static func isFolder(_ path: String) -> Bool {
    path != "-" && PathContent(of: path) == .directory && !BackupFinder.isBackup(path)
  }

  func next() throws(CommandFailure) -> BackupPlace? {
    while true {
      if let place = try nextOfWalk() { return place }
      guard let place = try nextNamed() else { return nil }
      guard place.fault == nil, Self.isFolder(place.path) else { return place }
      walk = (place.path, BackupFinder(place.path), true)
    }
  }

  private func nextOfWalk() throws(CommandFailure) -> BackupPlace? {
    guard let walk else { return nil }
    if let place = try walk.walk.next() {
      self.walk?.isEmpty = false
      return place
    }
    before.add(walk.walk.passedOver)
    self.walk = nil
    // A folder that was named and holds no backup has a row that says so.
    return walk.isEmpty ? BackupPlace(walk.folder) : nil
  }

  private func nextNamed() throws(CommandFailure) -> BackupPlace? {
    if let argument = arguments.popFirst() { return BackupPlace(argument) }
    return try list?.next()
  }

  /// What the folders had besides, so far.
  var passedOver: PassedOver {
    var all = before
    if let walk { all.add(walk.walk.passedOver) }
    return all
  }
}

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
  /// The first of these links, each with its target, as text.
  var linkTargets: [String] { namedLinks.map { "\($0.link) leads to \($0.target)" } }
  private var namedLinks: [NamedLink] = []
  private struct NamedLink: Equatable, Sendable { let path: String, link: String, target: String }
  /// The most links that are named.
  private static let maximumNamedLinkCount = 3
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

  /// Adds a link that is not followed.
  mutating func addLink(_ path: String, to target: String?) {
    links += 1
    guard namedLinks.count < Self.maximumNamedLinkCount, let target else { return }
    namedLinks.append(
      NamedLink(path: path, link: UntrustedText.escaped(path), target: UntrustedText.escaped(target)))
  }

  /// Records that a link is followed after all.
  mutating func follow(_ path: String) {
    links -= 1
    namedLinks.removeAll { $0.path == path }
  }

  /// Adds what was passed over in another folder.
  mutating func add(_ other: PassedOver) {
    links += other.links
    namedLinks += other.namedLinks.prefix(max(0, Self.maximumNamedLinkCount - namedLinks.count))
    files += other.files
    specials += other.specials
    hidden += other.hidden
    unnamed += other.unnamed
    keychains += other.keychains
  }

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
