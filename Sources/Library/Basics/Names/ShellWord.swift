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

  /// What was typed for an archive or a device, for another command, or a word in capitals that stands for it: where it
  /// came from a stream, and where it has characters that are shown by their numbers and so cannot be copied.
  package static func typed(_ argument: String?, else placeholder: String) -> String {
    guard let argument, !argument.isEmpty, HostileText.shown(argument) == argument else { return placeholder }
    // The same file, and no flag.
    return quoted(argument.hasPrefix("-") ? "./" + argument : argument)
  }
}
