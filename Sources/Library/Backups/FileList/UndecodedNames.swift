/// The rows of a list with a name that is not UTF-8: how many there are, and the first of them.
struct UndecodedNames: Sendable {
  private var count = 0
  private var first = ""

  /// Enters a row by its names as they are shown.
  mutating func add(domain: String?, path: String?) {
    if count == 0 { first = "\(domain ?? "")/\(path ?? "")" }
    count += 1
  }

  /// `nil` if every name is UTF-8.
  func finding(in list: String) -> ArchiveFinding? {
    count == 0 ? nil : .listNamesNotUTF8(name: list, count: count, first: first)
  }
}
