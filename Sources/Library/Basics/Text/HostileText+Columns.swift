extension HostileText {
  /// The start of a name for an error's text, which is escaped where it is shown.
  package static func shortened(_ text: String, columns: Int) -> String {
    DisplayWidth.cut(String(text.unicodeScalars.prefix(columns * 8)), columns: columns, ellipsis: "…")
  }

  /// The name, safe to show and at most this many columns wide.
  package static func shown(_ text: String, columns: Int, ellipsis: String = "…") -> String {
    // A name may be a megabyte long: no more of it is looked at than could be shown.
    let start = String(text.unicodeScalars.prefix(columns * 8 + 8))
    return DisplayWidth.cut(shown(start), columns: columns, ellipsis: ellipsis)
  }
}
