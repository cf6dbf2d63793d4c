/// What the arguments of a call about many backups name, one place after the other, in the order of the arguments and of the
/// list; a folder stands for the backups in it.
final class BackupPlaces {
  private var arguments: ArraySlice<String>
  private let list: PathList?
  private var walk: (folder: String, walk: BackupWalk, isEmpty: Bool)?
  private var before = PassedOver()

  init(_ arguments: [String], list: PathList?) {
    self.arguments = arguments[...]
    self.list = list
  }

  /// Whether a path is a folder with backups in it, and none itself.
  static func areBackups(in path: String) throws(CommandFailure) -> Bool {
    guard isFolder(path) else { return false }
    let walk = BackupWalk(path)
    // What cannot be read is told of in the row of a folder that has backups besides.
    while let place = try walk.next() {
      if place.fault == nil { return true }
    }
    return false
  }

  private static func isFolder(_ path: String) -> Bool {
    path != "-" && PathContent(of: path) == .directory && !BackupWalk.isBackup(path)
  }

  func next() throws(CommandFailure) -> BackupPlace? {
    while true {
      if let place = try nextOfWalk() { return place }
      guard let place = try nextNamed() else { return nil }
      guard place.fault == nil, Self.isFolder(place.path) else { return place }
      walk = (place.path, BackupWalk(place.path), true)
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

extension PassedOver {
  fileprivate mutating func add(_ other: PassedOver) {
    links += other.links
    files += other.files
    specials += other.specials
    hidden += other.hidden
    unnamed += other.unnamed
    keychains += other.keychains
  }
}
