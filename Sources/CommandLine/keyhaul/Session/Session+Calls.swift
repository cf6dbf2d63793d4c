import KeyhaulKit

extension Session {
  /// A text with the folder of the devices in its call, where one without it would mean another device or none.
  ///
  /// Where devices of two folders were named, nothing says which of them a call is about. What stands behind a quotation
  /// mark may be the name of a file that somebody else chose, and stays as it is quoted.
  func completed(_ text: String) -> String {
    guard shownHomes.count == 1, let home = shownHomes.first else { return text }
    for verb in ["device", "restore"] {
      guard let call = text.firstRange(of: "keyhaul \(verb) "), !text[..<call.lowerBound].contains("'") else {
        continue
      }
      var text = text
      text.replaceSubrange(call, with: "keyhaul --home \(ShellWord.typed(home, else: "DIR")) \(verb) ")
      return text
    }
    return text
  }
}
