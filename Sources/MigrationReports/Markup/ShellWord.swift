import KeychainFormats

/// A name as a shell takes it for one word, for commands that people copy.
package enum ShellWord {
  package static func quoted(_ name: String) -> String {
    let shown = HostileText.shown(name)
    let isPlain = shown.utf8.allSatisfy { byte in
      (0x30...0x39).contains(byte) || (0x41...0x5A).contains(byte) || (0x61...0x7A).contains(byte)
        || "._/-:+,@%".utf8.contains(byte)
    }
    return isPlain && !shown.isEmpty ? shown : "'" + shown.replacing("'", with: #"'\''"#) + "'"
  }
}
