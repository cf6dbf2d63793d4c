import KeychainFormats

extension Session {
  /// A text with the folder of the devices in its calls, where one without it would mean another device or none.
  ///
  /// Where devices of two folders were named, nothing says which of them a call is about.
  package func completed(_ text: String) -> String {
    guard shownHomes.count == 1, let home = shownHomes.first else { return text }
    let folder = ShellWord.typed(home, else: "DIR")
    return ["device", "restore"].reduce(text) {
      $0.replacing("keyhaul \($1) ", with: "keyhaul --home \(folder) \($1) ")
    }
  }
}
