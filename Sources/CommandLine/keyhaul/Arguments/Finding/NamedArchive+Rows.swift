import KeyhaulKit

extension NamedArchive {
  /// Names rows of the list that stand for files which nobody can find: they are not among what is written.
  func warn(ofRowsWithoutIdentifier count: Int, in session: Session) {
    guard count > 0 else { return }
    session.warn(
      "\(Amounts.count(count, "row")) of the manifest of \(name) \(count == 1 ? "names" : "name") no file that could "
        + "be found",
      why: "the identifier \(count == 1 ? "it has" : "each has") is not valid, so nothing is written for it",
      try: "another copy of the backup", evenQuiet: true)
  }
}
